"""The editors' view of the ledger: a Google Sheet or a local workbook."""
