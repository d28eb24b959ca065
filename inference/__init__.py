"""Reading a prepared document with a language model: profile, prompt, grounded decoding, engines, routing, cost.

Contract: `extract.extract` turns parts of a document into an `Extraction` whose grounded values stand in the document
and carry page and box; `route.route` says on which queue and lane the work waits. Neither reads a clock, the
environment, a database or a broker.
"""
