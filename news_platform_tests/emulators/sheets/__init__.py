"""Google Sheets v4 and Drive v3 on loopback for unmodified gspread, with quotas and faults."""
