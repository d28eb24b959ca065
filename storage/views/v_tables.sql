CREATE VIEW v_tables AS
SELECT
    documents.tenant,
    documents.name,
    tables.document_id,
    tables.table_id,
    tables.pages,
    tables.regions,
    tables.caption,
    tables.unit,
    tables.scale,
    tables."rows",
    tables.cols,
    tables.grid,
    tables.reader,
    documents.parser
FROM tables
JOIN documents USING (document_id)
WHERE documents.tenant <> 'docmill-probe';

COMMENT ON VIEW v_tables IS 'One row per table of a document; one that a page break parts is one table.';
COMMENT ON COLUMN v_tables.tenant IS 'Whose document it is.';
COMMENT ON COLUMN v_tables.name IS 'The name under which the document first came.';
COMMENT ON COLUMN v_tables.document_id IS 'The document; joins v_results and v_fields.';
COMMENT ON COLUMN v_tables.table_id IS 'The table within its document; v_fields.table_id names it.';
COMMENT ON COLUMN v_tables.pages IS 'The pages on which it stands, from 1.';
COMMENT ON COLUMN v_tables.regions IS 'Where: a page and a box (x0, y0, x1, y1 in points as seen) for each of them.';
COMMENT ON COLUMN v_tables.caption IS 'What is printed over it as its title; null if nothing is.';
COMMENT ON COLUMN v_tables.unit IS 'The unit or currency that is printed for all of it (单位：万元 gives 元).';
COMMENT ON COLUMN v_tables.scale IS 'What its numbers are multiplied by (万元: 10000, in thousands: 1000); null if none is printed.';
COMMENT ON COLUMN v_tables."rows" IS 'Rows, header rows included.';
COMMENT ON COLUMN v_tables.cols IS 'Columns.';
COMMENT ON COLUMN v_tables.grid IS
    'Its texts, as a JSON array of rows, each an array of texts as printed: grid -> 2 ->> 0 is the first cell of the'
    ' third row. Null where a spanning cell covers the place or nothing is printed.';
COMMENT ON COLUMN v_tables.reader IS 'The method that found it.';
COMMENT ON COLUMN v_tables.parser IS 'The parser, with its version, that read it.';
