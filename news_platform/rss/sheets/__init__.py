"""The ledger shown to editors: as a Google Sheet or a local workbook."""
