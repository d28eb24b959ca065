CREATE VIEW v_latency AS
SELECT
    jobs.tenant,
    jobs.job_id,
    jobs.document_id,
    jobs.profile,
    jobs.status,
    jobs.heat,
    jobs.length_class,
    jobs.lane,
    jobs.created_at AS submitted_at,
    jobs.finished_at,
    count(*) FILTER (WHERE attempts.stage = 'infer') AS readings,
    count(*) FILTER (WHERE attempts.outcome = 'lost') AS lost,
    1000 * extract(EPOCH FROM min(attempts.started_at) - jobs.created_at)::float AS accept_to_parse_ms,
    sum(1000 * extract(EPOCH FROM attempts.ended_at - attempts.started_at)::float)
        FILTER (WHERE attempts.stage = 'parse' AND attempts.outcome IS DISTINCT FROM 'lost') AS parse_ms,
    1000 * extract(
        EPOCH FROM min(attempts.started_at) FILTER (WHERE attempts.stage = 'infer')
        - max(attempts.ended_at) FILTER (WHERE attempts.stage = 'parse' AND attempts.outcome = 'finished')
    )::float AS wait_ms,
    sum(attempts.queue_ms) AS engine_queue_ms,
    sum(attempts.prefill_ms) AS prefill_ms,
    sum(attempts.decode_ms) AS decode_ms,
    sum(1000 * extract(EPOCH FROM attempts.ended_at - attempts.started_at)::float)
        FILTER (WHERE attempts.stage = 'infer' AND attempts.outcome IS DISTINCT FROM 'lost') AS infer_ms,
    sum(1000 * extract(EPOCH FROM attempts.ended_at - attempts.started_at)::float)
        FILTER (WHERE attempts.stage = 'validate' AND attempts.outcome IS DISTINCT FROM 'lost') AS validate_ms,
    1000 * extract(EPOCH FROM jobs.finished_at - jobs.created_at)::float AS total_ms
FROM jobs
LEFT JOIN attempts ON attempts.job_id = jobs.job_id
WHERE jobs.tenant <> 'docmill-probe'
GROUP BY jobs.job_id;

COMMENT ON VIEW v_latency IS
    'One row per job: where its time went, in milliseconds. percentile_cont(0.99) WITHIN GROUP (ORDER BY total_ms) gives'
    ' a P99. The end of a lost attempt is when it was missed, not when it stopped: its time is not counted.';
COMMENT ON COLUMN v_latency.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_latency.job_id IS 'The document read with this profile; joins v_results.';
COMMENT ON COLUMN v_latency.document_id IS 'The document.';
COMMENT ON COLUMN v_latency.profile IS 'What was asked for.';
COMMENT ON COLUMN v_latency.status IS 'The job''s status.';
COMMENT ON COLUMN v_latency.heat IS 'How soon it was needed at its last routing: hot, warm or cold.';
COMMENT ON COLUMN v_latency.length_class IS 'short, medium or long.';
COMMENT ON COLUMN v_latency.lane IS 'The engine that it was last routed to.';
COMMENT ON COLUMN v_latency.submitted_at IS 'When the job was made.';
COMMENT ON COLUMN v_latency.finished_at IS 'When it ended; null while it has not.';
COMMENT ON COLUMN v_latency.readings IS 'How many times it was given to an engine.';
COMMENT ON COLUMN v_latency.lost IS 'How many attempts were lost with their worker.';
COMMENT ON COLUMN v_latency.accept_to_parse_ms IS 'From accepted to the first work on it.';
COMMENT ON COLUMN v_latency.parse_ms IS 'Parsing.';
COMMENT ON COLUMN v_latency.wait_ms IS 'From parsed to the first reading.';
COMMENT ON COLUMN v_latency.engine_queue_ms IS 'Waiting inside the engine, over all prompts.';
COMMENT ON COLUMN v_latency.prefill_ms IS 'Reading the prompts, over all prompts.';
COMMENT ON COLUMN v_latency.decode_ms IS 'Writing the answers, over all prompts.';
COMMENT ON COLUMN v_latency.infer_ms IS 'Held by a worker for reading.';
COMMENT ON COLUMN v_latency.validate_ms IS 'Checking.';
COMMENT ON COLUMN v_latency.total_ms IS 'From accepted to its end; null while it has none.';
