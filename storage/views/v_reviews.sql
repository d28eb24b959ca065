CREATE VIEW v_reviews AS
SELECT
    jobs.tenant,
    documents.name,
    reviews.job_id,
    jobs.profile,
    reviews.opened_at,
    reviews.reason,
    reviews.decision,
    reviews.reviewer,
    reviews.note,
    reviews.decided_at
FROM reviews
JOIN jobs USING (job_id)
JOIN documents ON documents.document_id = jobs.document_id
WHERE jobs.tenant <> 'docmill-probe';

COMMENT ON VIEW v_reviews IS
    'One row per time that a result was put before a person: what waits (no decision yet) and what was decided, by whom.';
COMMENT ON COLUMN v_reviews.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_reviews.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_reviews.job_id IS 'The document read with this profile; joins v_results and v_fields.';
COMMENT ON COLUMN v_reviews.profile IS 'What was asked for.';
COMMENT ON COLUMN v_reviews.opened_at IS 'Since when a person was asked.';
COMMENT ON COLUMN v_reviews.reason IS 'Why: the rule that decided, or what the person said who opened it again.';
COMMENT ON COLUMN v_reviews.decision IS 'accepted, corrected or rejected; null while it waits.';
COMMENT ON COLUMN v_reviews.reviewer IS 'Who decided; null while it waits.';
COMMENT ON COLUMN v_reviews.note IS 'What they said of it.';
COMMENT ON COLUMN v_reviews.decided_at IS 'When; null while it waits.';
