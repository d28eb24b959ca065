"""Documents of the tenant acme-bank: an English-language bank. All names, numbers and events are invented."""

from __future__ import annotations

from decimal import Decimal

from samples import damage
from samples.drawing import A4_LANDSCAPE, Grid, Sheet, Span, money

STATEMENT_TITLE = "Account statement 4410 2298 7731, September 2025"


def credit_risk_report() -> bytes:
    """Ruled tables, a two-level header, totals."""
    sheet = Sheet(language="en", header="ACME Bank plc · Credit Risk", footer="Credit risk report · Q3 2025 · Internal")
    sheet.title("Quarterly Credit Risk Report")
    sheet.paragraph("Reporting date: 30 September 2025. Prepared by: Group Credit Risk. Report no. CRR-2025-Q3.")
    sheet.paragraph(
        "Gross exposure grew by 2.6% in the quarter. The rise in stage 3 loans comes from two commercial real estate "
        "borrowers in the northern region, which were moved to non-performing status in August 2025. Coverage of "
        "stage 3 "
        "exposure stood at 42.7%, above the board's minimum of 40%."
    )
    segments = [
        ("Residential mortgages", 8_412_650, 96_240, 21_170),
        ("Commercial real estate", 3_906_300, 142_815, 66_430),
        ("Corporate lending", 5_127_940, 88_460, 39_905),
        ("Small business", 1_284_715, 41_300, 17_245),
        ("Consumer credit", 962_380, 28_150, 24_610),
    ]
    total = ("Total", *(sum(column) for column in list(zip(*segments, strict=True))[1:]))
    rows = [("Segment", "Gross exposure", Span("Non-performing", 2), "Allowance"), ("", "", "Amount", "Share", "")]
    rows += [
        (n, money(g, 0), money(npl, 0), f"{100 * npl / g:.2f}%", money(a, 0)) for n, g, npl, a in [*segments, total]
    ]
    grid = Grid((150, 95, 80, 60, 98), "lrrrr", header_rows=2)
    sheet.table(
        rows, grid, caption="Table 1. Exposure and credit quality by segment", unit="In thousands of US dollars"
    )
    moves = [("Opening balance, 1 July 2025", 158_940), ("Charge for the quarter", 18_775), ("Write-offs", -11_205)]
    moves += [("Recoveries", 2_430), ("Exchange differences", 420)]
    moves.append(("Closing balance, 30 September 2025", sum(amount for _, amount in moves)))
    rows = [("Movement", "Amount"), *((name, money(amount, 0, brackets=True)) for name, amount in moves)]
    sheet.table(
        rows, Grid((330, 153), "lr"), caption="Table 2. Allowance for credit losses", unit="In thousands of US dollars"
    )
    sheet.heading("Limit breaches")
    sheet.paragraph(
        "One limit was exceeded. Commercial real estate stood at 19.8% of gross exposure against a limit of "
        "19.5%. The Risk "
        "Committee granted a waiver until 31 December 2025 (minute RC-2025-114). No other limit of the risk appetite "
        "statement was breached."
    )
    return sheet.to_bytes(title="Quarterly Credit Risk Report Q3 2025")


def liquidity_report() -> bytes:
    """A table without rules: columns by alignment only, with empty cells."""
    sheet = Sheet(language="en", header="ACME Bank plc · Treasury", footer="LCR disclosure · 30 September 2025")
    sheet.title("Liquidity Coverage Ratio")
    sheet.paragraph(
        "The liquidity coverage ratio is the stock of high-quality liquid assets divided by the net cash "
        "outflows of the next "
        "30 days. Figures are averages of daily observations in the quarter that ended on 30 September 2025."
    )
    assets = [("Level 1 assets", 2_940_600, 100), ("Level 2A assets", 412_000, 85), ("Level 2B assets", 96_400, 50)]
    out = [("Retail deposits, stable", 6_180_000, 5), ("Retail deposits, less stable", 2_450_000, 10)]
    out += [("Unsecured wholesale funding", 3_312_500, 40), ("Undrawn credit facilities", 1_874_000, 10)]
    into = [("Loans that fall due", 905_000, 50), ("Other contractual inflows", 118_200, 100)]
    rows: list[tuple[str, ...]] = [("", "Unweighted", "Weight", "Weighted")]
    totals = []
    for name, lines in (("High-quality liquid assets", assets), ("Cash outflows", out), ("Cash inflows", into)):
        weighted = [amount * percent // 100 for _, amount, percent in lines]
        rows.append((name, "", "", ""))
        rows += [(f"   {n}", money(a, 0), f"{p}%", money(w, 0)) for (n, a, p), w in zip(lines, weighted, strict=True)]
        rows.append((f"   Total {name.lower()}", "", "", money(sum(weighted), 0)))
        totals.append(sum(weighted))
    net = totals[1] - totals[2]
    rows += [
        ("Net cash outflows", "", "", money(net, 0)),
        ("Liquidity coverage ratio", "", "", f"{100 * totals[0] / net:.1f}%"),
    ]
    sheet.table(rows, Grid((210, 95, 70, 105), "lrrr", "none", size=9.5), unit="In thousands of US dollars")
    sheet.paragraph(
        "The ratio stayed above the regulatory minimum of 100% on every day of the quarter; the lowest daily "
        "value was 201.7% "
        "on 14 August 2025. Level 2B assets are residential mortgage-backed securities rated AA or better."
    )
    return sheet.to_bytes(title="Liquidity Coverage Ratio, 30 September 2025")


def market_bulletin() -> bytes:
    """Two columns of text, with a table in the second."""
    sheet = Sheet(
        language="en", header="ACME Bank plc · Market Risk Bulletin", footer="No. 10 / 2025 · 31 October 2025"
    )
    sheet.title("Market Risk Bulletin, October 2025")
    sheet.split(2)
    for number, (heading, text) in enumerate(BULLETIN):
        if number == 3:
            sheet.next_column()
        sheet.heading(heading, size=10.5)
        sheet.paragraph(text, size=9.5)
    books = [
        ("Rates", 1.82, 1.64),
        ("Credit spread", 1.15, 1.31),
        ("Foreign exchange", 0.64, 0.58),
        ("Equity", 0.37, 0.42),
    ]
    spread = [("Diversification", -1.21, -1.18)]
    rows = [("Risk factor", "31 Oct", "30 Sep")]
    rows += [(name, f"{now:.2f}", f"{then:.2f}") for name, now, then in books + spread]
    rows.append(("Total VaR", *(f"{sum(row[i] for row in books + spread):.2f}" for i in (1, 2))))
    sheet.table(rows, Grid((110, 58, 58), "lrr", size=8.5), caption="Value at risk", unit="In millions of US dollars")
    sheet.note("99% confidence, one-day holding period, 500 days of history.")
    return sheet.to_bytes(title="Market Risk Bulletin, October 2025")


BULLETIN = [
    (
        "Summary",
        "Value at risk of the trading book closed the month at $2.77 million, unchanged from the end of "
        "September. A larger "
        "rates position was offset by lower credit spread risk. One back-testing exception was recorded on 10 "
        "October 2025, "
        "when the hypothetical loss of $3.04 million exceeded the previous day's VaR of $2.81 million. It is the "
        "second "
        "exception in twelve months; the model stays in the green zone.",
    ),
    (
        "Interest rates",
        "The ten-year Treasury yield moved between 3.94% and 4.19%. Treasury lengthened the duration of the "
        "liquidity portfolio "
        "from 2.1 to 2.4 years. A parallel rise of 100 basis points would lower the economic value of equity by "
        "$61.5 million, "
        "or 3.2% of Tier 1 capital, against a limit of 8.0%.",
    ),
    (
        "Credit spreads",
        "Spreads of financial issuers tightened by 7 basis points. The desk sold $45.0 million of subordinated "
        "bank debt and "
        "closed the position in Ostvale Leasing, which had been on the watch list since May 2025.",
    ),
    (
        "Foreign exchange",
        "The net open position was $18.6 million, of which $11.2 million was in euro and $4.9 million in Swiss "
        "francs. The "
        "limit is $40.0 million. The increase follows a customer's forward sale that was hedged on the next "
        "business day.",
    ),
    (
        "Stress tests",
        "The severe scenario (rates up by 250 basis points, equities down by 35%, spreads doubled) gives a loss "
        "of $22.4 "
        "million for the trading book. That is 56% of the limit of $40.0 million. The largest contribution, "
        "$12.7 million, "
        "comes from the credit book.",
    ),
    (
        "Limits and actions",
        "No desk limit was exceeded. The Market Risk Committee asked for a review of the spread curve that "
        "prices illiquid "
        "municipal bonds, due on 12 December 2025. Owner: J. Halvorsen.",
    ),
]


def country_exposure() -> bytes:
    """A wide table on a page that is stored upright and shown with /Rotate 90."""
    sheet = Sheet(language="en", size=A4_LANDSCAPE, footer="Country exposure · CE-2025-09 · Internal")
    sheet.title("Country Exposure Report, 30 September 2025")
    countries = [
        ("Germany", "AAA", 612_400, 148_200, 75_600, 22_300, 900_000, 0),
        ("France", "AA-", 388_750, 96_430, 41_280, 9_150, 600_000, 0),
        ("United Kingdom", "AA", 905_120, 210_640, 132_900, 40_075, 1_500_000, 0),
        ("Singapore", "AAA", 174_300, 61_800, 18_450, 6_210, 300_000, 0),
        ("Brazil", "BB", 96_840, 12_300, 8_760, 1_140, 120_000, 1_860),
        ("South Africa", "BB-", 54_210, 7_940, 3_350, 615, 80_000, 1_120),
        ("Türkiye", "B+", 31_680, 2_450, 1_905, 0, 40_000, 1_440),
    ]
    rows = [
        ("Country", "Rating", "Loans", "Securities", "Derivatives", "Guarantees", "Total", "Limit", "Use", "Provision")
    ]
    for name, rating, *parts, limit, provision in countries:
        used = sum(parts)
        amounts = [money(part, 0) for part in parts]
        rows.append(
            (name, rating, *amounts, money(used, 0), money(limit, 0), f"{100 * used / limit:.1f}%", money(provision, 0))
        )
    sums = [sum(row[i] for row in countries) for i in range(2, 8)]
    rows.append(
        (
            "Total",
            "",
            *(money(s, 0) for s in sums[:4]),
            money(sum(sums[:4]), 0),
            money(sums[4], 0),
            "",
            money(sums[5], 0),
        )
    )
    widths = (98, 50, 75, 75, 75, 75, 80, 80, 50, 66)
    sheet.table(
        rows, Grid(widths, "lcrrrrrrrr"), caption="Exposure by country of risk", unit="In thousands of US dollars"
    )
    sheet.paragraph(
        "Brazil (99.2%), Germany (95.4%) and Türkiye (90.1%) stand above the early-warning level of 90% of the "
        "limit; new business "
        "there needs the consent of the Chief Risk Officer. Ratings are those of the bank's own scale."
    )
    return damage.turned(sheet.to_bytes(title="Country Exposure Report, September 2025"))


def board_pack() -> bytes:
    """A file that needs a password (it is Board-2025)."""
    sheet = Sheet(language="en", footer="Board pack · Strictly confidential")
    sheet.title("Board Risk Committee, 21 October 2025")
    sheet.paragraph(
        "Item 4. Acquisition of a consumer loan portfolio with a face value of $212.5 million at a price of 96.40%."
    )
    plain = sheet.to_bytes(title="Board pack")
    return damage.locked(plain, user_password="Board-2025", owner_password="Secretary-2025")


def wire_alert() -> bytes:
    """A transaction notice well below 512 tokens."""
    sheet = Sheet(language="en", header="ACME Bank plc · Transaction Monitoring", footer="Alert TM-20251104-0117")
    sheet.title("Transaction Alert")
    sheet.pairs(
        [
            ("Alert no.", "TM-20251104-0117"),
            ("Rule", "WR-07 Rapid movement of funds"),
            ("Customer", "Delmont Trading LLC (CIF 30088412)"),
            ("Account", "4410 2307 5519"),
            ("Transaction", "Outgoing wire, reference FT25308QX61"),
            ("Date and time", "2025-11-04 14:37:22 UTC"),
            ("Amount", "USD 248,500.00"),
            ("Beneficiary", "Kestrel General Trading FZE"),
            ("Beneficiary bank", "Gulf Mercantile Bank, Dubai (GMBKAEAD)"),
            ("Risk score", "87 of 100"),
        ],
        ruled=True,
    )
    sheet.paragraph(
        "Three incoming transfers of USD 83,000.00, USD 82,500.00 and USD 83,000.00 arrived on 2025-11-03 from "
        "two unrelated "
        "companies. The full sum of USD 248,500.00 left the account 19 hours later. The customer's declared "
        "monthly turnover "
        "is USD 60,000.00. Action: hold for review."
    )
    return sheet.to_bytes(title="Transaction Alert TM-20251104-0117")


def suspicious_activity_memo() -> bytes:
    """A short memo in prose with a small table."""
    sheet = Sheet(
        language="en",
        header="ACME Bank plc · Financial Crime Unit",
        footer="SAR-2025-1183 · Do not disclose to the customer",
    )
    sheet.title("Suspicious Activity Memo")
    sheet.pairs([("Case", "SAR-2025-1183"), ("Subject", "Pavel Ostrander, born 1979-03-14"), ("Analyst", "M. Okafor")])
    sheet.pairs(
        [("Date of memo", "2025-10-28"), ("Total amount", "USD 47,650.00"), ("Suspected conduct", "Structuring")]
    )
    sheet.paragraph(
        "Between 6 and 17 October 2025 the subject made five cash deposits at four branches, each below the "
        "reporting threshold "
        "of USD 10,000.00. He gave his occupation as a part-time driver; declared income is USD 2,900.00 a month."
    )
    deposits = [
        ("2025-10-06", "Elm Street", "9,500.00"),
        ("2025-10-08", "Harbour", "9,800.00"),
        ("2025-10-10", "Elm Street", "9,450.00"),
    ]
    deposits += [("2025-10-14", "Airport", "9,900.00"), ("2025-10-17", "Old Town", "9,000.00")]
    total = sum(Decimal(amount.replace(",", "")) for *_, amount in deposits)
    rows = [("Date", "Branch", "Amount (USD)"), *deposits, ("Total", "", money(total))]
    sheet.table(rows, Grid((110, 160, 110), "llr"))
    sheet.paragraph(
        "On 2025-10-20 the sum was sent to an exchange for virtual assets. Recommendation: file a report and "
        "close the account."
    )
    return sheet.to_bytes(title="Suspicious Activity Memo SAR-2025-1183")


def _entries() -> list[tuple[str, str, str, Decimal]]:
    """Bookings of a month: date, text, reference, signed amount."""
    kinds = [
        ("Card settlement, Northgate Stores", "CS", "1284.60"),
        ("Supplier payment, Halden Paper Co.", "SP", "-2310.75"),
        ("Incoming transfer, Brightwater Clinics", "IT", "4150.00"),
        ("Payroll batch", "PB", "-6420.15"),
        ("Direct debit, City Utilities", "DD", "-389.42"),
        ("Cheque deposit", "CH", "975.30"),
        ("Incoming transfer, Ostara Events Ltd", "IT", "2688.90"),
        ("Account fee", "AF", "-25.00"),
    ]
    entries = []
    for index in range(64):
        text, code, amount = kinds[(index * 5 + index // 8) % len(kinds)]
        day = 1 + index * 29 // 63
        step = Decimal((index * 37) % 211) if code in ("CS", "IT", "CH") else Decimal(0)
        entries.append((f"2025-09-{day:02d}", text, f"{code}{25244000 + index * 13}", Decimal(amount) + step))
    return entries


def account_statement() -> bytes:
    """A ruled table over page breaks, its header repeated; opening + in − out = closing."""
    sheet = Sheet(language="en", header="ACME Bank plc", footer="Account statement · 4410 2298 7731 · September 2025")
    sheet.title("Account Statement")
    entries, opening = _entries(), Decimal("18342.17")
    paid_in = sum((amount for *_, amount in entries if amount > 0), Decimal(0))
    paid_out = -sum((amount for *_, amount in entries if amount < 0), Decimal(0))
    sheet.pairs([("Account holder", "Larkspur Printing Ltd"), ("Account no.", "4410 2298 7731"), ("Currency", "USD")])
    sheet.pairs(
        [("Period", "2025-09-01 to 2025-09-30"), ("Opening balance", money(opening)), ("Paid in", money(paid_in))]
    )
    sheet.pairs([("Paid out", money(paid_out)), ("Closing balance", money(opening + paid_in - paid_out))])
    rows: list[tuple[str, ...]] = [("Date", "Details", "Reference", "Paid in", "Paid out", "Balance")]
    balance = opening
    rows.append(("2025-09-01", "Balance brought forward", "", "", "", money(balance)))
    for day, text, reference, amount in entries:
        balance += amount
        rows.append(
            (
                day,
                text,
                reference,
                money(amount) if amount > 0 else "",
                money(-amount) if amount < 0 else "",
                money(balance),
            )
        )
    rows.append(("2025-09-30", "Balance carried forward", "", money(paid_in), money(paid_out), money(balance)))
    sheet.table(rows, Grid((60, 173, 70, 60, 60, 60), "lllrrr", size=8.5))
    return sheet.to_bytes(title=STATEMENT_TITLE)


def cash_slip_scan() -> bytes:
    """A page that is only an image, as a branch scanner makes it."""
    sheet = Sheet(language="en", size=(595, 420))
    sheet.title("CASH DEPOSIT SLIP")
    slip = [("Slip no.", "CD-0093817"), ("Branch", "Harbour Branch, teller 14"), ("Date", "2025-10-08")]
    slip += [("Account no.", "4410 2265 0094"), ("Account holder", "Pavel Ostrander"), ("Amount", "USD 9,800.00")]
    sheet.pairs(slip, ruled=True)
    rows = [
        ("Denomination", "Notes", "Amount"),
        ("100", "92", "9,200.00"),
        ("50", "12", "600.00"),
        ("Total", "104", "9,800.00"),
    ]
    sheet.table(rows, Grid((150, 100, 150), "rrr", size=10))
    return damage.scanned(sheet.to_bytes(title="Cash deposit slip"))


def broken_upload() -> bytes:
    """The first half of a compact PDF: its directory of objects stood in the lost half."""
    sheet = Sheet(language="en", footer="Incoming wires · October 2025")
    sheet.title("Incoming Wires, October 2025")
    rows = [
        ("Date", "Sender", "Amount (USD)"),
        ("2025-10-02", "Orchid Shipping", "41,250.00"),
        ("2025-10-09", "Talbot Mills", "7,480.60"),
    ]
    sheet.table([*rows, ("Total", "", "48,730.60")], Grid((110, 220, 110), "llr"))
    return damage.cut_off(sheet.to_bytes(title="Incoming Wires", compact=True))


def company_screening() -> bytes:
    """A company's KYC form: a ruled label-value grid and a table of owners."""
    sheet = Sheet(
        language="en", header="ACME Bank plc · Customer Due Diligence", footer="CDD-2025-20418 · Confidential"
    )
    sheet.title("Customer Screening Record")
    sheet.pairs(
        [
            ("Legal name", "Northgate Shipping & Logistics Ltd"),
            ("Former name", "Northgate Freight Ltd (until 2019-06-30)"),
            ("Registration no.", "08841127"),
            ("LEI", "999900NGSL4QX7Z2K903"),
            ("Date of incorporation", "2011-02-17"),
            ("Country", "United Kingdom"),
            ("Registered address", "14 Quay Street, Bristol BS1 4SB"),
            ("Business", "Freight forwarding by sea and air"),
            ("Expected turnover", "USD 12,400,000.00 a year"),
            ("Screening date", "2025-11-05"),
        ],
        ruled=True,
    )
    owners = [
        ("Helena Brandt", "1968-09-02", "Germany", "45.00%", "No match"),
        ("Idris Whitlock", "1974-12-19", "United Kingdom", "30.00%", "No match"),
    ]
    owners += [("Sable Holdings SA", "–", "Panama", "25.00%", "Possible match")]
    rows = [
        ("Beneficial owner", "Date of birth", "Country", "Share", "Screening"),
        *owners,
        ("Total", "", "", "100.00%", ""),
    ]
    sheet.table(rows, Grid((140, 85, 95, 65, 98), "lllrl"), caption="Ownership")
    sheet.paragraph(
        "Sable Holdings SA has a name similarity of 91% with an entry of the EU consolidated list (EU.4127.33). "
        "The listed "
        "entity is registered in Cyprus and was dissolved in 2021. Politically exposed persons: none. Risk "
        "rating: High. "
        "Decision: enhanced due diligence; next review on 2026-05-05."
    )
    return sheet.to_bytes(title="Customer Screening Record CDD-2025-20418")
