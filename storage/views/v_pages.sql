CREATE VIEW v_pages AS
SELECT
    documents.tenant,
    documents.name,
    pages.document_id,
    pages.page,
    pages.text,
    pages.terms
FROM pages
JOIN documents USING (document_id)
WHERE documents.tenant <> 'docmill-probe';

COMMENT ON VIEW v_pages IS
    'One row per page with text. Search: WHERE terms @@ docmill_query(''credit loss "net profit" 净利润'') finds pages'
    ' that have all of these words; a quoted phrase, and each run of Chinese, must stand there as it is written.';
COMMENT ON COLUMN v_pages.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_pages.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_pages.document_id IS 'The document; joins v_results and v_fields.';
COMMENT ON COLUMN v_pages.page IS 'The page, from 1.';
COMMENT ON COLUMN v_pages.text IS 'What is printed on it, a block or a table row a line, cells parted by tabs.';
COMMENT ON COLUMN v_pages.terms IS 'The same as search terms; indexed.';
