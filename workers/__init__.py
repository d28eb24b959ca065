"""Every process that runs: Celery workers, the API, the command line, the embedded stack.

The top storey: it alone knows Celery, the environment and all stages. `pipeline.py` is the place to start reading.
"""
