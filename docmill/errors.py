"""Every error that docmill raises on purpose, as a tree.

    DocmillError
    ├── InputError                 whose fault: the file        never retried
    │   ├── TooLarge               bytes over the limit
    │   ├── EmptyFile              zero bytes
    │   ├── NotAPdf                the content is something else
    │   ├── Encrypted              needs a password
    │   ├── CorruptPdf             cannot be opened, or has no page
    │   ├── TooManyPages           pages over the limit
    │   ├── NoText                 nothing readable, not even by OCR
    │   ├── ParserLimit            time or memory over the limit in the parser's child process
    │   ├── CorruptZip             an archive that cannot be read
    │   └── ZipBomb                an archive that would unpack to more than the limits
    ├── RequestError               whose fault: the caller      never retried
    │   ├── UnknownProfile
    │   ├── BadTenant              a name that no tenant may have
    │   ├── NotFound
    │   ├── Conflict               somebody else was first
    │   ├── BadCorrection          a reviewer's correction that cannot be taken
    │   ├── QuotaExceeded          tokens or money of the tenant are used up for now
    │   │   └── RateLimited        too many requests in a minute
    │   ├── OverCostCap            a call that may cost more than is allowed
    │   ├── NoFittingLane          no engine here may read it
    │   ├── BadQuery               an analyst's SQL that the database refuses
    │   ├── BrokenCertificate      a manifest that is not what was signed, or not what is stored
    │   └── BrokenRule             a ruleset file that cannot be used
    ├── ModelError                 whose fault: the model       retried once by policy
    │   ├── OutputTruncated        finish_reason=length
    │   ├── EmptyOutput            an empty text, as after a grammar that does not compile
    │   ├── InvalidOutput          not JSON, or not of the profile's schema
    │   ├── LoopingOutput          the same again and again, or white space without end
    │   └── PromptTooLong          over the lane's context     never retried
    └── SystemFault                whose fault: the machine     retried with back-off
        ├── EngineUnavailable      refused, reset, overloaded
        ├── EngineDead             cannot recover: the worker must exit
        ├── BucketUnavailable      the inbox's bucket does not answer or refuses us
        ├── DeadlineExceeded       not answered in time
        ├── ParserCrashed          the parser's child process died of a signal
        ├── BlobsUnavailable       the store of bytes does not write or read: disk full, no rights, no answer
        ├── DatabaseUnavailable    no answer for longer than a worker is patient
        └── StaleAttempt           another worker holds the job now: write nothing

`code` is the stable word that is stored and shown; the message names the thing, the limit and the remedy.
`workers/policy.py` holds the table error → retry or reject.
"""

from __future__ import annotations


class DocmillError(Exception):
    """Base of all; `code` names the kind in records and answers."""

    code = "error"


class InputError(DocmillError):
    """The file itself cannot be processed; another try gives the same."""

    code = "bad_input"


class TooLarge(InputError):
    """The file has more bytes than the limit."""

    code = "too_large"


class EmptyFile(InputError):
    """The file has no bytes."""

    code = "empty_file"


class NotAPdf(InputError):
    """The content is not a PDF, whatever the name says."""

    code = "not_a_pdf"


class Encrypted(InputError):
    """The PDF needs a password that we do not have."""

    code = "encrypted"


class CorruptPdf(InputError):
    """The PDF cannot be opened, or opens without a page."""

    code = "corrupt_pdf"


class TooManyPages(InputError):
    """The PDF has more pages than the limit."""

    code = "too_many_pages"


class NoText(InputError):
    """Nothing on any page can be read."""

    code = "no_text"


class ParserLimit(InputError):
    """The parser's child process ran over its time or memory limit."""

    code = "parser_limit"


class CorruptZip(InputError):
    """The archive cannot be read."""

    code = "corrupt_zip"


class ZipBomb(InputError):
    """The archive has too many files, or would unpack to too many bytes."""

    code = "zip_bomb"


class RequestError(DocmillError):
    """The caller asked for something that does not exist or is not allowed."""

    code = "bad_request"


class UnknownProfile(RequestError):
    """There is no profile of this name."""

    code = "unknown_profile"


class BadTenant(RequestError):
    """No tenant may have this name."""

    code = "bad_tenant"


class NotFound(RequestError):
    """There is no such document, job or result for this tenant."""

    code = "not_found"


class Conflict(RequestError):
    """What was asked for no longer fits: somebody else has changed the thing meanwhile."""

    code = "conflict"


class BadCorrection(RequestError):
    """A reviewer's correction is not of the schema, or its value is not in the document and was not confirmed."""

    code = "bad_correction"


class QuotaExceeded(RequestError):
    """The tenant's quota of tokens or money is used up until the day or the month is over."""

    code = "insufficient_quota"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RateLimited(QuotaExceeded):
    """The tenant has made more requests in a minute than it may."""

    code = "rate_limit_exceeded"


class OverCostCap(RequestError):
    """A call may cost more than the cap, and neither a cheaper lane nor a shorter prompt helps."""

    code = "over_cost_cap"


class NoFittingLane(RequestError):
    """The lanes that take such work may not read it: its length is beyond what their precision is trusted with."""

    code = "no_fitting_lane"


class BadQuery(RequestError):
    """The database refuses an analyst's query, or its answer cannot be written as asked."""

    code = "bad_query"


class BrokenCertificate(RequestError):
    """A manifest is not what was signed, or what it says is no longer what is stored."""

    code = "broken_certificate"


class BrokenRule(RequestError):
    """A ruleset has a mistake; the message names file, line, rule and reason."""

    code = "broken_rule"


class ModelError(DocmillError):
    """The model's answer cannot be used."""

    code = "model_error"


class OutputTruncated(ModelError):
    """The answer ran into max_tokens."""

    code = "output_truncated"


class EmptyOutput(ModelError):
    """The answer is empty; vLLM does this when a grammar does not compile."""

    code = "empty_output"


class InvalidOutput(ModelError):
    """The answer is not JSON or not of the schema."""

    code = "invalid_output"


class LoopingOutput(ModelError):
    """The answer went round in circles and was stopped while it ran."""

    code = "output_loop"


class PromptTooLong(ModelError):
    """The prompt is longer than the lane's context."""

    code = "prompt_too_long"


class SystemFault(DocmillError):
    """A part of the system failed; the same work may succeed later."""

    code = "system_fault"


class EngineUnavailable(SystemFault):
    """The engine refused, reset the connection or is overloaded; it may say after how long to come back."""

    code = "engine_unavailable"

    def __init__(self, *words: object, retry_after_s: float = 0.0) -> None:
        super().__init__(*words)
        self.retry_after_s = retry_after_s


class EngineDead(SystemFault):
    """The engine cannot recover; the worker process must exit and be started again."""

    code = "engine_dead"


class BucketUnavailable(SystemFault):
    """The inbox's bucket does not answer, or refuses us."""

    code = "bucket_unavailable"


class DeadlineExceeded(SystemFault):
    """The engine did not answer in time."""

    code = "deadline_exceeded"


class ParserCrashed(SystemFault):
    """The parser's child process died of a signal that no limit explains."""

    code = "parser_crashed"


class BlobsUnavailable(SystemFault):
    """The store of bytes does not write or read; no document is to blame."""

    code = "blobs_unavailable"


class DatabaseUnavailable(SystemFault):
    """The database gave no answer for longer than a worker is patient."""

    code = "database_unavailable"


class StaleAttempt(SystemFault):
    """The job was claimed by another attempt; this one may write nothing."""

    code = "stale_attempt"
