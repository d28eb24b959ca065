CREATE VIEW v_lineage AS
WITH versions AS (
    SELECT
        jobs.tenant,
        documents.name,
        jobs.document_id,
        jobs.profile,
        jobs.profile_version,
        fields.*
    FROM fields
    JOIN jobs USING (job_id)
    JOIN documents ON documents.document_id = jobs.document_id
    WHERE jobs.tenant <> 'docmill-probe'
),
compared AS (
    SELECT
        versions.*,
        row_number() OVER story AS no,
        lag(versions.text) OVER story AS previous_text,
        lag(versions.job_id) OVER story AS previous_job,
        lag(versions.profile_version) OVER story AS previous_profile,
        lag(versions.model) OVER story AS previous_model,
        lag(versions.prompt_sha256) OVER story AS previous_prompt,
        lag(versions.parser) OVER story AS previous_parser,
        lag(versions.ruleset) OVER story AS previous_ruleset
    FROM versions
    WINDOW story AS (PARTITION BY document_id, profile, path ORDER BY created_at, field_id)
)
SELECT
    tenant,
    name,
    document_id,
    job_id,
    profile,
    path,
    no,
    text,
    previous_text,
    value,
    page,
    bbox,
    created_at AS valid_from,
    superseded_at AS valid_until,
    CASE
        WHEN no = 1 THEN ARRAY['first reading']
        -- A version that a person wrote is the next one of its job, with a note.
        WHEN note IS NOT NULL AND job_id = previous_job THEN ARRAY['reviewer']
        ELSE coalesce(
            nullif(
                array_remove(
                    ARRAY[
                        CASE WHEN profile_version IS DISTINCT FROM previous_profile THEN 'profile' END,
                        CASE WHEN model IS DISTINCT FROM previous_model THEN 'model' END,
                        CASE WHEN prompt_sha256 IS DISTINCT FROM previous_prompt THEN 'prompt' END,
                        CASE WHEN parser IS DISTINCT FROM previous_parser THEN 'parser' END,
                        CASE WHEN ruleset IS DISTINCT FROM previous_ruleset THEN 'ruleset' END
                    ],
                    NULL
                ),
                '{}'
            ),
            ARRAY['read again']
        )
    END AS changed_by,
    profile_version,
    model,
    prompt_sha256,
    parser,
    ruleset,
    reviewer,
    note
FROM compared;

COMMENT ON VIEW v_lineage IS
    'Every version of every value over all readings of a document with a profile, in order: what it was, what it became,'
    ' and what had changed in between. WHERE text IS DISTINCT FROM previous_text shows changes only.';
COMMENT ON COLUMN v_lineage.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_lineage.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_lineage.document_id IS 'The document.';
COMMENT ON COLUMN v_lineage.job_id IS 'The reading: another profile version is another job.';
COMMENT ON COLUMN v_lineage.profile IS 'What was asked for.';
COMMENT ON COLUMN v_lineage.path IS 'Where the value stands in the result, as a JSON pointer.';
COMMENT ON COLUMN v_lineage.no IS 'The number of the version, from 1, over all readings.';
COMMENT ON COLUMN v_lineage.text IS 'The value as printed, or as a reviewer wrote it.';
COMMENT ON COLUMN v_lineage.previous_text IS 'What it was before; null for the first.';
COMMENT ON COLUMN v_lineage.value IS 'The value as a number, its scale applied; null if it is no number.';
COMMENT ON COLUMN v_lineage.page IS 'The page on which it is printed, from 1.';
COMMENT ON COLUMN v_lineage.bbox IS 'Its box there: x0, y0, x1, y1 in points from the top left of the page as seen.';
COMMENT ON COLUMN v_lineage.valid_from IS 'Since when it is the value.';
COMMENT ON COLUMN v_lineage.valid_until IS 'Until when it was the value of its reading; null for what is still.';
COMMENT ON COLUMN v_lineage.changed_by IS
    'What differs from the version before: first reading, reviewer, or some of profile, model, prompt, parser, ruleset;'
    ' read again if none of them does.';
COMMENT ON COLUMN v_lineage.profile_version IS 'The version of the profile.';
COMMENT ON COLUMN v_lineage.model IS 'The model that read it.';
COMMENT ON COLUMN v_lineage.prompt_sha256 IS 'The digest of the prompts that it was asked with.';
COMMENT ON COLUMN v_lineage.parser IS 'The parser, with its version, whose text the model got.';
COMMENT ON COLUMN v_lineage.ruleset IS 'The ruleset, with its version, that checked it.';
COMMENT ON COLUMN v_lineage.reviewer IS 'Who wrote or confirmed it; null if nobody has.';
COMMENT ON COLUMN v_lineage.note IS 'Why it was corrected; null if it was not.';
