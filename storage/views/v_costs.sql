CREATE VIEW v_costs AS
SELECT
    date_trunc('day', ledger.at, 'UTC')::date AS day,
    ledger.tenant,
    ledger.profile,
    ledger.length_class,
    ledger.lane,
    ledger.waste,
    count(DISTINCT (ledger.job_id, ledger.attempt)) FILTER (WHERE ledger.kind IN ('settle', 'correct')) AS readings,
    coalesce(sum(ledger.prompt_tokens), 0) AS prompt_tokens,
    coalesce(sum(ledger.cached_tokens), 0) AS cached_tokens,
    coalesce(sum(ledger.output_tokens), 0) AS output_tokens,
    coalesce(sum(ledger.gpu_seconds), 0) AS gpu_seconds,
    coalesce(sum(ledger.amount_usd) FILTER (WHERE ledger.kind IN ('settle', 'correct')), 0) AS used_usd,
    coalesce(sum(ledger.amount_usd) FILTER (WHERE ledger.kind NOT IN ('settle', 'correct')), 0) AS held_usd
FROM ledger
WHERE ledger.tenant <> 'docmill-probe'
GROUP BY 1, 2, 3, 4, 5, 6;

COMMENT ON VIEW v_costs IS
    'The ledger by day, tenant, profile, length, lane and kind of waste. used_usd + held_usd over all rows is the sum of'
    ' the ledger, to the last digit.';
COMMENT ON COLUMN v_costs.day IS 'The day (UTC) on which it was booked.';
COMMENT ON COLUMN v_costs.tenant IS 'Who is charged.';
COMMENT ON COLUMN v_costs.profile IS 'What was asked for.';
COMMENT ON COLUMN v_costs.length_class IS 'short, medium or long, as of the attempt.';
COMMENT ON COLUMN v_costs.lane IS 'The engine that worked.';
COMMENT ON COLUMN v_costs.waste IS
    'Null for work that brought something; else why it did not: duplicate, lost, cancelled, unusable, rejected, failed.';
COMMENT ON COLUMN v_costs.readings IS 'Attempts that used the engine.';
COMMENT ON COLUMN v_costs.prompt_tokens IS 'Tokens sent to the model.';
COMMENT ON COLUMN v_costs.cached_tokens IS 'Of these, tokens that the prefix cache saved.';
COMMENT ON COLUMN v_costs.output_tokens IS 'Tokens that the model wrote.';
COMMENT ON COLUMN v_costs.gpu_seconds IS 'The share of the GPU''s time.';
COMMENT ON COLUMN v_costs.used_usd IS 'US dollars used.';
COMMENT ON COLUMN v_costs.held_usd IS 'US dollars reserved for attempts that run, less what was given back.';
