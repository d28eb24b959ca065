"""For analysts: what the pages say, searchable in Chinese and English; tables as text; what made each value.

Revision 0010, after 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"

#: Chinese has no spaces: each character is a term of its own, and a word is a phrase of them, so that every run of
#: characters is found. NFKC makes full-width letters and digits plain ones.
_APART = r"""
CREATE FUNCTION docmill_apart(words text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT regexp_replace(normalize(words, NFKC), '([\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])', ' \1 ', 'g')
$$
"""
_TERMS = """
CREATE FUNCTION docmill_terms(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT to_tsvector('pg_catalog.english', docmill_apart(words))
$$
"""
#: All of the words; a quoted phrase, or a word in Chinese, as it stands.
_QUERY = r"""
CREATE FUNCTION docmill_query(words text) RETURNS tsquery LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(string_agg('(' || phrase::text || ')', ' & ')::tsquery, ''::tsquery)
    FROM (
        SELECT phraseto_tsquery('pg_catalog.english', docmill_apart(coalesce(found[1], found[2]))) AS phrase
        FROM regexp_matches(words, '"([^"]+)"|([^\s"]+)', 'g') AS found
    ) AS phrases
    WHERE numnode(phrase) > 0
$$
"""


#: Values that were read before are given what is still known of their makers.
_BACKFILL = """
UPDATE fields SET
    parser = documents.parser,
    ruleset = results.ruleset,
    (model, prompt_sha256) = (
        SELECT attempts.model, attempts.prompt_sha256
        FROM attempts
        WHERE attempts.job_id = fields.job_id AND attempts.no < results.attempt AND attempts.extraction IS NOT NULL
        ORDER BY attempts.no DESC
        LIMIT 1
    )
FROM jobs
JOIN documents USING (document_id)
JOIN results USING (job_id)
WHERE jobs.job_id = fields.job_id
"""


def upgrade() -> None:
    for function in (_APART, _TERMS, _QUERY):
        op.execute(function)
    op.create_table(
        "pages",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("terms", postgresql.TSVECTOR(), sa.Computed("docmill_terms(left(text, 200000))", persisted=True)),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_pages_document_id"),
        sa.PrimaryKeyConstraint("document_id", "page", name="pk_pages"),
    )
    op.create_index("ix_pages_terms", "pages", ["terms"], postgresql_using="gin")
    op.add_column("tables", sa.Column("grid", postgresql.JSONB()))
    for name in ("model", "prompt_sha256", "parser", "ruleset"):
        op.add_column("fields", sa.Column(name, sa.String()))
    op.execute(_BACKFILL)
