CREATE VIEW v_results AS
WITH spent AS (
    -- What the attempts of a job took. A lost attempt's end is when it was missed, not when it stopped: not counted.
    SELECT
        job_id,
        sum(prompt_tokens) FILTER (WHERE stage = 'infer') AS prompt_tokens,
        sum(cached_tokens) FILTER (WHERE stage = 'infer') AS cached_tokens,
        sum(output_tokens) FILTER (WHERE stage = 'infer') AS output_tokens,
        sum(took_ms) FILTER (WHERE stage = 'parse') AS parse_ms,
        sum(took_ms) FILTER (WHERE stage = 'infer') AS infer_ms,
        sum(took_ms) FILTER (WHERE stage = 'validate') AS validate_ms,
        max(ended_at) FILTER (WHERE stage = 'parse' AND outcome = 'finished') AS parsed_at,
        min(started_at) FILTER (WHERE stage = 'infer') AS first_read_at,
        max(no) FILTER (WHERE stage = 'validate' AND outcome IN ('finished', 'rejected')) AS last_validated
    FROM (
        SELECT
            *,
            CASE WHEN outcome IS DISTINCT FROM 'lost' THEN 1000 * extract(EPOCH FROM ended_at - started_at)::float END
                AS took_ms
        FROM attempts
    ) AS timed
    GROUP BY job_id
),
costs AS (
    SELECT job_id, sum(amount_usd) AS cost_usd
    FROM ledger
    GROUP BY job_id
),
rows AS (
    SELECT
        submissions.*,
        -- The work is counted on the row of the file that caused it, so that sums over rows are true.
        submissions.outcome = 'accepted' AS own,
        CASE
            WHEN submissions.outcome = 'refused' THEN submissions.created_at
            ELSE greatest(jobs.finished_at, CASE WHEN jobs.finished_at IS NOT NULL THEN submissions.created_at END)
        END AS ended_at
    FROM submissions
    LEFT JOIN jobs USING (job_id)
    WHERE submissions.tenant <> 'docmill-probe'
)
SELECT
    rows.tenant,
    rows.source,
    rows.name,
    rows.document_id,
    rows.job_id,
    rows.profile,
    CASE rows.outcome WHEN 'duplicate' THEN 'duplicate' WHEN 'refused' THEN 'failed' ELSE jobs.status END AS status,
    CASE
        WHEN rows.outcome = 'refused' THEN rows.code || ': ' || rows.reason
        WHEN rows.outcome = 'duplicate' THEN rows.reason
        ELSE jobs.reason
    END AS reason,
    jobs.heat,
    jobs.hot_score,
    jobs.length_class,
    jobs.lane,
    jobs.priority,
    documents.pages,
    documents.tables,
    documents.tokens,
    CASE WHEN rows.own THEN spent.prompt_tokens END AS prompt_tokens,
    CASE WHEN rows.own THEN spent.cached_tokens END AS cached_tokens,
    CASE WHEN rows.own THEN spent.output_tokens END AS output_tokens,
    CASE WHEN rows.own THEN coalesce(costs.cost_usd, 0) ELSE 0 END AS cost_usd,
    (
        SELECT count(*)
        FROM findings
        WHERE findings.job_id = rows.job_id AND findings.attempt = spent.last_validated
    ) AS findings,
    results.verdict,
    results.result,
    CASE WHEN rows.own THEN spent.parse_ms END AS parse_ms,
    CASE WHEN rows.own THEN 1000 * extract(EPOCH FROM spent.first_read_at - spent.parsed_at)::float END AS wait_ms,
    CASE WHEN rows.own THEN spent.infer_ms END AS infer_ms,
    CASE WHEN rows.own THEN spent.validate_ms END AS validate_ms,
    1000 * extract(EPOCH FROM rows.ended_at - rows.created_at)::float AS total_ms,
    documents.near_duplicate_of,
    documents.same_template_as,
    documents.similarity,
    documents.differences,
    rows.created_at AS submitted_at,
    rows.ended_at AS finished_at
FROM rows
LEFT JOIN jobs USING (job_id)
LEFT JOIN documents ON documents.document_id = rows.document_id
LEFT JOIN results ON results.job_id = rows.job_id
LEFT JOIN spent ON spent.job_id = rows.job_id
LEFT JOIN costs ON costs.job_id = rows.job_id;

COMMENT ON VIEW v_results IS
    'One row per submitted file, whatever became of it. Tokens, cost and times of work stand on the row of the file that'
    ' caused the work; a duplicate shows the result of the job that it shares and costs nothing, so sums are true.';
COMMENT ON COLUMN v_results.tenant IS 'Whose file it is.';
COMMENT ON COLUMN v_results.source IS 'The door: bucket, api or cli.';
COMMENT ON COLUMN v_results.name IS 'The file''s name at that door (for the bucket: its path below the inbox).';
COMMENT ON COLUMN v_results.document_id IS 'The content: the same bytes of one tenant have one document. Null if refused.';
COMMENT ON COLUMN v_results.job_id IS 'The document read with this profile; a duplicate has the job of the first file.';
COMMENT ON COLUMN v_results.profile IS 'What was asked for.';
COMMENT ON COLUMN v_results.status IS
    'The job''s status (received, queued, running, validating, done, needs_review, failed, cancelled); duplicate for a'
    ' file whose bytes were there before; failed for one that was refused.';
COMMENT ON COLUMN v_results.reason IS 'Why it is so, in a line; for failures the code comes first.';
COMMENT ON COLUMN v_results.heat IS 'How soon the result was needed at the last routing: hot, warm or cold.';
COMMENT ON COLUMN v_results.hot_score IS 'The score behind heat, 0 to 1.';
COMMENT ON COLUMN v_results.length_class IS 'short (below 512 tokens), medium (to 2048) or long.';
COMMENT ON COLUMN v_results.lane IS 'The engine that the job was last routed to.';
COMMENT ON COLUMN v_results.priority IS '0 (at once) to 3 (when idle).';
COMMENT ON COLUMN v_results.pages IS 'Pages of the document.';
COMMENT ON COLUMN v_results.tables IS 'Tables found in the document; one over a page break counts once.';
COMMENT ON COLUMN v_results.tokens IS 'Length of the document in tokens of the model, without the prompt around it.';
COMMENT ON COLUMN v_results.prompt_tokens IS 'Tokens sent to the model, over all readings. Null on duplicates.';
COMMENT ON COLUMN v_results.cached_tokens IS 'Of these, tokens that the prefix cache saved.';
COMMENT ON COLUMN v_results.output_tokens IS 'Tokens that the model wrote, over all readings. Null on duplicates.';
COMMENT ON COLUMN v_results.cost_usd IS 'Cost in US dollars, from the ledger. 0 on duplicates and refused files.';
COMMENT ON COLUMN v_results.findings IS 'Number of findings of the last validation.';
COMMENT ON COLUMN v_results.verdict IS 'pass, flag, review or reject; null while there is no result.';
COMMENT ON COLUMN v_results.result IS 'The result as JSON, values as printed; v_fields has them one a row.';
COMMENT ON COLUMN v_results.parse_ms IS 'Time spent parsing, in milliseconds, over all tries that were not lost.';
COMMENT ON COLUMN v_results.wait_ms IS 'Time from parsed to the first reading, in milliseconds.';
COMMENT ON COLUMN v_results.infer_ms IS 'Time spent reading, in milliseconds, over all tries that were not lost.';
COMMENT ON COLUMN v_results.validate_ms IS 'Time spent checking, in milliseconds, over all tries that were not lost.';
COMMENT ON COLUMN v_results.total_ms IS 'From submitted to finished, in milliseconds; null while it is not finished.';
COMMENT ON COLUMN v_results.near_duplicate_of IS
    'The document that this one repeats: nearly the same text, the same numbers, dates and names; both keep their results.';
COMMENT ON COLUMN v_results.same_template_as IS
    'A document with nearly the same text and other numbers, dates or names: another document, no repeat.';
COMMENT ON COLUMN v_results.similarity IS 'Jaccard index with the linked document, 0.8 to 1.';
COMMENT ON COLUMN v_results.differences IS
    'What changed from the linked document, by kind: values gone and new (at most 20 each), and how many in all.';
COMMENT ON COLUMN v_results.submitted_at IS 'When the file was handed in.';
COMMENT ON COLUMN v_results.finished_at IS 'When its result was there; null while it is not.';
