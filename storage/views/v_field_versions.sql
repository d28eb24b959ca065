CREATE VIEW v_field_versions AS
SELECT
    jobs.tenant,
    fields.job_id,
    jobs.profile,
    fields.path,
    fields.version,
    fields.text,
    fields.value,
    fields.date,
    fields.unit,
    fields.page,
    fields.verdict,
    fields.confidence,
    fields.created_at AS valid_from,
    fields.superseded_at AS valid_until,
    fields.reviewer,
    fields.note
FROM fields
JOIN jobs USING (job_id)
WHERE jobs.tenant <> 'docmill-probe';

COMMENT ON VIEW v_field_versions IS
    'Every version of every value, corrected ones too: what a result said at any moment, who changed it, and why.';
COMMENT ON COLUMN v_field_versions.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_field_versions.job_id IS 'The document read with this profile; joins v_results.';
COMMENT ON COLUMN v_field_versions.profile IS 'What was asked for.';
COMMENT ON COLUMN v_field_versions.path IS 'Where the value stands in the result, as a JSON pointer.';
COMMENT ON COLUMN v_field_versions.version IS '1 as read; each correction is the next.';
COMMENT ON COLUMN v_field_versions.text IS 'The value as printed, or as the reviewer wrote it.';
COMMENT ON COLUMN v_field_versions.value IS 'The value as a number, with sign, its scale applied; null if it is no number.';
COMMENT ON COLUMN v_field_versions.date IS 'The value as a date; null if it is none.';
COMMENT ON COLUMN v_field_versions.unit IS 'Unit or currency as printed.';
COMMENT ON COLUMN v_field_versions.page IS 'The page on which it is printed, from 1; null if it was not found on one.';
COMMENT ON COLUMN v_field_versions.verdict IS 'What the rules say of this value: pass, flag, review or reject.';
COMMENT ON COLUMN v_field_versions.confidence IS 'How sure it is that this is the right value, 0 to 1; null if not judged.';
COMMENT ON COLUMN v_field_versions.valid_from IS 'Since when it is the value.';
COMMENT ON COLUMN v_field_versions.valid_until IS 'Until when it was the value; null for what is the value now.';
COMMENT ON COLUMN v_field_versions.reviewer IS 'Who wrote this version, or confirmed it; null if nobody has.';
COMMENT ON COLUMN v_field_versions.note IS 'Why it was corrected; null if it was not.';
