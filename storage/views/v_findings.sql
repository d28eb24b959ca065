CREATE VIEW v_findings AS
SELECT
    jobs.tenant,
    documents.name,
    jobs.document_id,
    findings.job_id,
    jobs.profile,
    findings.attempt,
    findings.attempt = max(findings.attempt) OVER (PARTITION BY findings.job_id) AS latest,
    findings.rule,
    findings.outcome,
    findings.message,
    findings.path,
    findings.page,
    findings.bbox
FROM findings
JOIN jobs USING (job_id)
JOIN documents ON documents.document_id = jobs.document_id
WHERE jobs.tenant <> 'docmill-probe';

COMMENT ON VIEW v_findings IS 'One row per finding of the rules, those on readings that were rejected too.';
COMMENT ON COLUMN v_findings.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_findings.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_findings.document_id IS 'The document.';
COMMENT ON COLUMN v_findings.job_id IS 'The document read with this profile; joins v_results.';
COMMENT ON COLUMN v_findings.profile IS 'What was asked for.';
COMMENT ON COLUMN v_findings.attempt IS 'The validation that found it.';
COMMENT ON COLUMN v_findings.latest IS 'Whether it is of the last validation that found anything.';
COMMENT ON COLUMN v_findings.rule IS 'The rule (docs/rules.md).';
COMMENT ON COLUMN v_findings.outcome IS 'What it makes of the result: flag, review or reject.';
COMMENT ON COLUMN v_findings.message IS 'What is wrong, for a person.';
COMMENT ON COLUMN v_findings.path IS 'The value that it is about, as a JSON pointer; null if it is about all of it.';
COMMENT ON COLUMN v_findings.page IS 'The page to look at, from 1; null if there is none.';
COMMENT ON COLUMN v_findings.bbox IS 'The box there: x0, y0, x1, y1 in points from the top left of the page as seen.';
