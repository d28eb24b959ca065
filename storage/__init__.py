"""What is kept: documents, jobs and their state machine, results, ledger, blobs.

Imports `docmill` only. The database owns every job's state; a broker may be emptied at any moment. `jobs.JobStore`
(PostgreSQL) and `memory.MemoryJobStore` (the fake) satisfy `ports.Jobs` and the same conformance tests.
"""
