"""Google Sheets v4 and Drive v3 on loopback, enough for plain gspread, with quotas and faults."""
