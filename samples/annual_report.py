"""A twelve-page annual report extract of an invented bank holding company: long enough to be read in parts."""

from __future__ import annotations

from collections.abc import Sequence

from samples.drawing import Grid, Sheet, money

UNIT = "In thousands of US dollars"
Line = tuple[str, int, int, int]

LOANS: list[Line] = [
    ("Commercial and industrial", 3_412_880, 3_206_415, 2_988_730),
    ("Commercial real estate", 2_945_160, 2_877_905, 2_741_380),
    ("Construction", 618_340, 702_255, 655_910),
    ("Residential mortgage", 4_026_715, 3_884_220, 3_690_445),
    ("Home equity", 512_090, 498_770, 507_620),
    ("Consumer and other", 387_455, 361_180, 340_265),
]
DEPOSITS: list[Line] = [
    ("Non-interest-bearing demand", 3_118_640, 3_402_915, 3_650_280),
    ("Interest-bearing checking", 2_240_375, 2_105_860, 1_984_450),
    ("Money market", 3_376_920, 2_990_145, 2_702_335),
    ("Savings", 1_502_260, 1_588_730, 1_690_905),
    ("Time deposits of up to $250", 1_864_715, 1_402_380, 985_640),
    ("Time deposits over $250", 906_330, 644_905, 410_275),
]
ALLOWANCE = [
    ("Balance, 1 January", 142_615, 131_940, 126_480),
    ("Provision for credit losses", 38_270, 29_815, 18_395),
    ("Loans charged off", -27_940, -24_360, -18_720),
    ("Recoveries", 6_185, 5_220, 5_785),
]
ASSETS: list[Line] = [
    ("Cash and due from banks", 214_360, 198_745, 226_410),
    ("Interest-bearing deposits with banks", 846_290, 702_515, 611_830),
    ("Securities available for sale", 2_318_475, 2_204_660, 2_410_925),
    ("Securities held to maturity", 1_102_830, 1_186_240, 1_254_370),
    ("Loans, net of allowance", 11_743_510, 11_388_130, 10_792_410),
    ("Premises and equipment", 186_720, 191_335, 195_880),
    ("Goodwill", 342_150, 342_150, 342_150),
    ("Other assets", 401_265, 388_425, 360_025),
]
CLAIMS: list[Line] = [
    ("Deposits", 13_009_240, 12_134_935, 11_423_885),
    ("Short-term borrowings", 640_000, 1_045_000, 1_380_000),
    ("Long-term debt", 1_210_500, 1_260_500, 1_310_500),
    ("Other liabilities", 402_735, 395_140, 371_880),
    ("Shareholders' equity", 1_893_125, 1_766_625, 1_707_735),
]
INCOME: list[Line] = [
    ("Interest income", 812_430, 741_265, 560_310),
    ("Interest expense", -338_215, -284_190, -112_045),
    ("Provision for credit losses", -38_270, -29_815, -18_395),
    ("Non-interest income", 148_960, 139_725, 136_880),
    ("Salaries and benefits", -212_480, -203_115, -192_660),
    ("Occupancy and equipment", -46_235, -45_080, -44_315),
    ("Technology", -58_910, -51_745, -45_230),
    ("Other expenses", -41_870, -62_330, -36_945),
]
CAPITAL = [
    ("Common equity Tier 1", "11.84%", "11.42%", "7.00%"),
    ("Tier 1 capital", "12.61%", "12.23%", "8.50%"),
    ("Total capital", "14.37%", "14.02%", "10.50%"),
    ("Leverage", "9.72%", "9.48%", "4.00%"),
]
RATES = [
    ("+200 basis points", "4.6%", "5.1%", "-9.8%", "-8.9%"),
    ("+100 basis points", "2.4%", "2.7%", "-4.7%", "-4.2%"),
    ("-100 basis points", "-3.1%", "-3.4%", "3.2%", "2.8%"),
    ("-200 basis points", "-6.9%", "-7.5%", "4.9%", "4.4%"),
]
COMMITMENTS: list[Line] = [
    ("Commitments to extend credit", 3_205_640, 3_088_415, 2_945_220),
    ("Standby letters of credit", 184_915, 192_340, 176_805),
    ("Commercial letters of credit", 22_780, 19_455, 24_130),
]


def annual_report() -> bytes:
    """Twelve pages: prose, ten tables, references from page to page."""
    sheet = Sheet(language="en", header="Northmere Regional Holdings, Inc.", footer="Annual Report 2024 (extract)")
    for number, (heading, paragraphs) in enumerate(PAGES):
        if number:
            sheet.new_page()
        sheet.heading(heading, size=13)
        for text in paragraphs:
            sheet.paragraph(text)
        for caption, lines, total in YEARS.get(number, []):
            _years(sheet, caption, lines, total=total)
        for caption, rows, grid in RATIOS.get(number, []):
            sheet.table(rows, grid, caption=caption)
    return sheet.to_bytes(title="Northmere Regional Holdings, Annual Report 2024 (extract)")


def _years(sheet: Sheet, caption: str, lines: Sequence[Line], *, total: str) -> None:
    rows: list[tuple[str, ...]] = [("31 December", "2024", "2023", "2022")]
    rows += [(name, *(money(amount, 0, brackets=True) for amount in amounts)) for name, *amounts in lines]
    if total:
        rows.append((total, *(money(sum(line[year] for line in lines), 0, brackets=True) for year in (1, 2, 3))))
    sheet.table(rows, Grid((213, 90, 90, 90), "lrrr", "three", strong_last=bool(total)), caption=caption, unit=UNIT)


SELECTED: list[Line] = [
    ("Net interest income", 474_215, 457_075, 448_265),
    ("Provision for credit losses", 38_270, 29_815, 18_395),
    ("Income before taxes", 225_410, 204_715, 247_600),
    ("Total loans", 11_902_640, 11_530_745, 10_924_350),
    ("Total deposits", 13_009_240, 12_134_935, 11_423_885),
    ("Total assets", 17_155_600, 16_602_200, 16_194_000),
    ("Shareholders' equity", 1_893_125, 1_766_625, 1_707_735),
]

#: Tables of amounts by page index: caption, lines, name of the total row.
YEARS: dict[int, list[tuple[str, Sequence[Line], str]]] = {
    1: [("Table 1. Selected financial data", SELECTED, "")],
    3: [("Table 2. Loans by category", LOANS, "Total loans")],
    4: [("Table 3. Allowance for credit losses", ALLOWANCE, "Balance, 31 December")],
    5: [("Table 4. Deposits by kind", DEPOSITS, "Total deposits")],
    10: [
        ("Table 7. Consolidated balance sheet: assets", ASSETS, "Total assets"),
        ("Table 8. Consolidated balance sheet: liabilities and equity", CLAIMS, "Total liabilities and equity"),
    ],
    11: [
        ("Table 9. Consolidated statement of income", INCOME, "Income before taxes"),
        ("Table 10. Note 12: commitments", COMMITMENTS, "Total commitments"),
    ],
}
#: Tables of ratios by page index: caption, rows, how they are drawn.
RATIOS = {
    6: [
        (
            "Table 5. Capital ratios",
            [("Ratio", "2024", "2023", "Minimum with buffer"), *CAPITAL],
            Grid((190, 90, 90, 113), "lrrr", "three", strong_last=False),
        )
    ],
    8: [
        (
            "Table 6. Sensitivity to interest rates",
            [("Change in rates", "NII 2024", "NII 2023", "EVE 2024", "EVE 2023"), *RATES],
            Grid((163, 80, 80, 80, 80), "lrrrr", strong_last=False),
        )
    ],
}

PAGES: list[tuple[str, list[str]]] = [
    (
        "Letter to shareholders",
        [
            "In 2024 Northmere earned $225.4 million before taxes, 10.1% more than in 2023. Loans grew by 3.2% "
            "to $11.9 billion and "
            "deposits by 7.2% to $13.0 billion. We reduced short-term borrowings by $405.0 million and ended the "
            "year with a common "
            "equity Tier 1 ratio of 11.84%.",
            "The year had two halves. In the first, deposits moved from accounts that bear no interest to time "
            "deposits, and the cost "
            "of funds rose by 41 basis points. From September on, the pressure eased. Net interest margin was "
            "2.96% for the year, "
            "against 2.98% in 2023, and reached 3.04% in the fourth quarter.",
            "Credit costs rose as we had said they would. Charge-offs of $27.9 million were concentrated in two "
            "office buildings in "
            "the central business district of Fairmont. We do not expect office values to recover soon and have "
            "raised the allowance "
            "for this part of the portfolio to 4.8% of balances (see Table 3 and Note 12).",
            "We opened a financial crime centre in Fairmont in May 2024. It brings transaction monitoring, "
            "customer screening and "
            "investigations under one roof; 94 people work there. The written agreement with the state regulator "
            "of 18 July 2022 was "
            "terminated on 9 December 2024 after an independent review had confirmed that its 23 items were "
            "complete.",
            "The board declared dividends of $1.32 a share for 2024 and proposes to raise the quarterly dividend "
            "from $0.33 to $0.35. "
            "A buyback of up to $60.0 million was authorised on 22 January 2025 and runs until 31 December 2025.",
            "This extract contains the selected financial data, parts of management's discussion, the primary "
            "statements, and one "
            "note. Amounts are in thousands of US dollars unless another unit is given. Rounded percentages may "
            "not add up.",
            "Margaret A. Thornbury, Chair and Chief Executive Officer. Fairmont, 21 February 2025.",
        ],
    ),
    (
        "Item 6. Selected financial data",
        [
            "The table gives figures for three years. They come from the audited statements and should be read "
            "together with them. "
            "The acquisition of Calder Valley Bancorp on 1 April 2022 affects the comparison of 2022 with later "
            "years: it added "
            "$1.2 billion of loans and $1.4 billion of deposits.",
            "Net interest income rose by 3.7%. Growth of average earning assets contributed $21.6 million and "
            "the change of rates "
            "took away $4.5 million. The provision for credit losses was $38.3 million, or 0.33% of average loans.",
            "The special assessment of the deposit insurance fund, $19.2 million, was booked in other expenses "
            "in the fourth quarter "
            "of 2023. Without it, income before taxes of 2023 would have been $223.9 million.",
        ],
    ),
    (
        "Item 1. Business",
        [
            "Northmere Regional Holdings, Inc. is a bank holding company with its seat in Fairmont. Its only "
            "bank, Northmere Bank, "
            "was founded in 1911 and has 143 branches in four states. On 31 December 2024 the group had 3,186 "
            "employees, against "
            "3,240 a year before.",
            "Commercial Banking serves companies with yearly sales between $5 million and $500 million. It "
            "offers loans, equipment "
            "leases, treasury services and hedges of interest rate and currency risk. It contributed $131.7 "
            "million to income before "
            "taxes. The ten largest borrowers account for 6.4% of its loans.",
            "Retail Banking serves 612,000 households with accounts, cards, mortgages and home equity lines. It "
            "contributed $68.2 "
            "million. Mortgages that conform to the rules of the agencies are sold; the others are kept. At the "
            "end of the year the "
            "bank serviced mortgages of $2.7 billion for others.",
            "Wealth Management looks after assets of $8.9 billion, 11.3% more than a year ago. Fees of $61.4 "
            "million are mostly a "
            "share of assets. It contributed $25.5 million to income before taxes.",
            "Competition comes from national banks, credit unions, brokers and firms that lend over the "
            "internet. Price is the main "
            "means of competition for deposits; speed of decision is for loans to small companies.",
            "The group is supervised by the Federal Reserve and by the banking department of its home state. "
            "Rules on capital, "
            "liquidity, consumer protection and financial crime shape its business. Their costs cannot be "
            "separated with precision; "
            "management puts the direct cost of compliance at $74.0 million for 2024.",
        ],
    ),
    (
        "Loans",
        [
            "Total loans rose by $371.9 million, or 3.2%. Commercial and industrial loans grew most, by $206.5 "
            "million; about half of "
            "the growth came from existing customers who drew on their lines. Line use was 43.6% at the end of "
            "the year and 41.2% a "
            "year before.",
            "Construction loans fell by $83.9 million as projects were completed and moved to permanent loans. "
            "New commitments for "
            "construction were $142.0 million, the lowest figure since 2016. Speculative office construction is "
            "no longer financed.",
            "Commercial real estate loans consist of multi-family homes (38%), industrial buildings (24%), "
            "retail (17%), offices "
            "(14%) and others (7%). The average loan-to-value ratio at origination was 58%. Loans on offices "
            "amount to $412.3 "
            "million, of which $96.8 million fall due in 2025.",
            "Non-performing loans were $118.6 million, or 1.00% of loans, against $87.2 million, or 0.76%. The "
            "increase is explained "
            "by two office loans of $14.2 million and $11.7 million and by one wholesale distributor with $6.1 "
            "million.",
        ],
    ),
    (
        "Allowance for credit losses",
        [
            "The allowance covers losses expected over the life of the loans. It rests on three parts: a model "
            "that links losses to "
            "unemployment, house prices and commercial rents; adjustments for what the model does not see; and "
            "individual "
            "assessments of loans over $2.0 million that are non-performing.",
            "The base scenario has unemployment of 4.4% at the end of 2025 and a fall of commercial property "
            "prices by 3.5%. It has a "
            "weight of 50%. The adverse scenario, with unemployment of 7.2%, has a weight of 35%, and the "
            "favourable one 15%. With "
            "the adverse scenario alone, the allowance would be $51.3 million higher.",
            "Net charge-offs were $21.8 million, or 0.19% of average loans, against $19.1 million, or 0.17%. The "
            "allowance stands at "
            "1.34% of loans. It covers non-performing loans by 134%.",
            "Adjustments outside the model amount to $24.6 million. The largest, $13.9 million, is for office "
            "buildings. Another, of "
            "$4.4 million, is for customers that depend on one plant of a car maker in Dunmore, which will close "
            "in June 2025.",
        ],
    ),
    (
        "Deposits and funding",
        [
            "Deposits grew by $874.3 million. Balances that bear no interest fell by $284.3 million, less than "
            "in the year before, "
            "when they fell by $247.4 million in a smaller base of rate-sensitive customers. They are now 24% of "
            "all deposits.",
            "Time deposits grew by $723.8 million. Most were opened with terms between seven and thirteen "
            "months, at an average rate "
            "of 4.31%. Of the balance, $1.9 billion will fall due before 30 September 2025.",
            "Deposits that are not insured, leaving out those secured by collateral, were $4.2 billion, or 32.3% "
            "of deposits. "
            "Liquid assets and unused borrowing capacity cover them by 168% (see Liquidity, page 8).",
            "The ten largest depositors hold 5.1% of deposits. Brokered deposits were $310.0 million; the policy "
            "limit is 5% of "
            "liabilities.",
        ],
    ),
    (
        "Capital",
        [
            "The group and the bank were well capitalised on 31 December 2024 by the rules for prompt corrective "
            "action. Common equity "
            "Tier 1 capital rose by $118.4 million, to $1,512.7 million. Risk-weighted assets were $12,776.2 "
            "million.",
            "The unrealised loss on securities available for sale, $164.2 million after tax, is not deducted "
            "from regulatory capital, "
            "as the group made use of the option in 2015. With the deduction, the common equity Tier 1 ratio "
            "would be 10.55%.",
            "The capital plan sets a target range of 10.5% to 11.5% for the common equity Tier 1 ratio. The "
            "ratio is above the range; "
            "the buyback that was authorised in January 2025 would lower it by 0.47 percentage points if it were "
            "used in full.",
            "The yearly stress test, finished in October 2024, gives a lowest ratio of 8.96% in the severe "
            "scenario, in the sixth "
            "quarter. That is 1.96 percentage points above the minimum with buffer.",
        ],
    ),
    (
        "Liquidity",
        [
            "The board sets the appetite for liquidity risk; the Asset and Liability Committee watches it each "
            "week. Cash flows are "
            "projected for twelve months under four scenarios. In the combined scenario, in which 15% of "
            "uninsured deposits leave "
            "within thirty days, the group keeps a surplus of $1.6 billion.",
            "On 31 December 2024 the bank could borrow $4.9 billion from the Federal Home Loan Bank, of which "
            "$640.0 million was drawn, "
            "and $1.7 billion from the discount window, of which nothing was drawn. Securities of $1.1 billion "
            "were free of pledges.",
            "The holding company had cash of $228.4 million. It needs $96.0 million a year for interest, "
            "dividends and expenses and "
            "has no debt that falls due before 15 June 2027. Its policy asks for cash for at least eighteen months.",
            "Long-term debt of $1,210.5 million consists of advances ($850.0 million), senior notes at 4.25% due "
            "in 2027 ($200.0 "
            "million) and subordinated notes at 5.625% due in 2031 ($160.5 million).",
            "Ratings did not change during the year: the senior notes are rated BBB+ and the outlook is stable. "
            "A fall by two grades "
            "would require collateral of $12.6 million for derivatives.",
        ],
    ),
    (
        "Market risk",
        [
            "Interest rate risk in the banking book is the main market risk. The group measures the change of "
            "net interest income over "
            "twelve months (NII) and of the economic value of equity (EVE) for parallel and non-parallel moves "
            "of the yield curve.",
            "The balance sheet gains from rising rates over twelve months and loses economic value, since "
            "securities and fixed-rate "
            "mortgages are longer than deposits as modelled. Half of the balances without interest are taken to "
            "stay for five years.",
            "Receive-fixed swaps with a nominal amount of $900.0 million lower the sensitivity to falling rates. "
            "They pay the overnight "
            "rate and receive 3.62% on average; $300.0 million end in 2025. The fair value was a loss of $8.8 "
            "million.",
            "The limits are 8% of NII and 12% of EVE for a move of 200 basis points. No limit was exceeded in "
            "2024 or 2023.",
        ],
    ),
    (
        "Operational and compliance risk",
        [
            "Losses from operational events were $9.4 million, against $11.8 million. Cheque fraud was the "
            "largest part, with $4.7 "
            "million in 1,326 cases. A failure of the card processor on 3 August 2024 lasted for seven hours and "
            "cost $0.6 million.",
            "The programme against money laundering has five parts: a risk assessment, policies, training, "
            "independent tests, and a "
            "responsible officer who reports to the board. In 2024 the monitoring system raised 48,215 alerts; "
            "6,940 became cases "
            "and 2,118 led to a report of suspicious activity. The median time from alert to decision was 9 days.",
            "Names of customers and payments are screened against lists of sanctions each night and in real "
            "time. Of 1.9 million "
            "payments abroad, 3,406 were held and 17 were blocked, with a total of $2.3 million. All were "
            "reported within ten days.",
            "A look-back at accounts of money services businesses covered the years 2019 to 2021 and ended in "
            "March 2024. It led to 61 "
            "late reports. The regulator took note of them and did not open a case.",
            "The group is defendant in a class action on overdraft fees (Reyes v. Northmere Bank, filed on 11 "
            "May 2023). Losses that "
            "are reasonably possible and exceed what has been set aside are put at $0 to $7.5 million for all "
            "matters together.",
            "Internal audit finished 46 audits; four were rated unsatisfactory. Of 118 findings, 9 were overdue "
            "at the end of the year.",
        ],
    ),
    (
        "Consolidated balance sheet",
        [
            "The balance sheet was audited by Pryce & Lowell LLP, whose report of 21 February 2025 has no "
            "qualification. One matter was "
            "named as critical: the adjustments of the allowance for office loans.",
        ],
    ),
    (
        "Consolidated statement of income and Note 12",
        [
            "Note 12. Commitments. Commitments to extend credit have fixed end dates and may end without being "
            "drawn. A reserve of "
            "$14.1 million (2023: $13.3 million) for them is part of other liabilities. Of the commitments, $1.4 "
            "billion can be "
            "cancelled by the bank at any time.",
        ],
    ),
]
