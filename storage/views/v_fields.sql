CREATE VIEW v_fields AS
SELECT
    jobs.tenant,
    documents.name,
    documents.document_id,
    fields.job_id,
    jobs.profile,
    jobs.profile_version,
    fields.path,
    fields.text,
    fields.value,
    fields.unit,
    fields.scale,
    fields.date,
    fields.page,
    fields.bbox,
    fields.table_id,
    fields."row",
    fields.col,
    fields.verdict,
    fields.model,
    fields.parser,
    results.ruleset,
    fields.reviewer,
    fields.confidence,
    fields.version,
    fields.note
FROM fields
JOIN jobs USING (job_id)
JOIN documents ON documents.document_id = jobs.document_id
JOIN results ON results.job_id = fields.job_id
WHERE fields.superseded_at IS NULL AND jobs.tenant <> 'docmill-probe';

COMMENT ON VIEW v_fields IS
    'One row per value of a result, with where it is printed and what read, checked and reviewed it. Results only: a job'
    ' that failed or is not finished has no rows.';
COMMENT ON COLUMN v_fields.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_fields.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_fields.document_id IS 'The content: the same bytes of one tenant have one document.';
COMMENT ON COLUMN v_fields.job_id IS 'The document read with this profile; joins v_results.';
COMMENT ON COLUMN v_fields.profile IS 'What was asked for.';
COMMENT ON COLUMN v_fields.profile_version IS 'The version of the profile that was used.';
COMMENT ON COLUMN v_fields.path IS 'Where the value stands in the result, as a JSON pointer.';
COMMENT ON COLUMN v_fields.text IS 'The value as printed in the document.';
COMMENT ON COLUMN v_fields.value IS 'The value as a number, with sign, its scale applied; null if it is no number.';
COMMENT ON COLUMN v_fields.unit IS 'Unit or currency as printed.';
COMMENT ON COLUMN v_fields.scale IS 'What the printed number was multiplied by (10000 for 万元); null if none was printed.';
COMMENT ON COLUMN v_fields.date IS 'The value as a date; null if it is none.';
COMMENT ON COLUMN v_fields.page IS 'The page on which it is printed, from 1; null if it was not found on one.';
COMMENT ON COLUMN v_fields.bbox IS 'Its box there: x0, y0, x1, y1 in points from the top left of the page as seen.';
COMMENT ON COLUMN v_fields.table_id IS 'The table that it stands in, if any.';
COMMENT ON COLUMN v_fields."row" IS 'Its row in the table, from 0.';
COMMENT ON COLUMN v_fields.col IS 'Its column in the table, from 0.';
COMMENT ON COLUMN v_fields.verdict IS 'What the rules say of this value: pass, flag, review or reject.';
COMMENT ON COLUMN v_fields.model IS 'The model that read it.';
COMMENT ON COLUMN v_fields.parser IS 'The parser, with its version, whose text the model got.';
COMMENT ON COLUMN v_fields.ruleset IS 'The ruleset, with its version, that checked it.';
COMMENT ON COLUMN v_fields.reviewer IS 'Who confirmed or corrected it; null if nobody has.';
COMMENT ON COLUMN v_fields.confidence IS 'How sure it is that this is the right value, 0 to 1, from evidence (docs/confidence.md); null for what is not copied.';
COMMENT ON COLUMN v_fields.version IS '1 as read; a reviewer''s correction is the next. v_field_versions has all of them.';
COMMENT ON COLUMN v_fields.note IS 'Why it was corrected; null if it was not.';
