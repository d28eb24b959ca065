"""Implementations of `inference.engine.Engine`: vLLM in this process, vLLM over HTTP, and a scripted stub.

`thread.EngineThread` gives any of them an event loop of its own, for callers that are threads.
"""
