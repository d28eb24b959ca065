"""Makes the sample files that `manifest.yaml` marks as made here: `python -m samples.make_samples [FOLDER]`.

The same bytes come out of each run with one version of PyMuPDF. Files that come from elsewhere are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from samples import acme_bank as acme
from samples import annual_report
from samples import huaxin_securities as huaxin

HERE = Path(__file__).parent

MAKERS: dict[str, Callable[[], bytes]] = {
    "acme-bank/risk-report/credit-risk-2025-q3.pdf": acme.credit_risk_report,
    "acme-bank/risk-report/liquidity-coverage-2025-09.pdf": acme.liquidity_report,
    "acme-bank/risk-report/market-risk-bulletin-2025-10.pdf": acme.market_bulletin,
    "acme-bank/risk-report/country-exposure-2025-09.pdf": acme.country_exposure,
    "acme-bank/risk-report/annual-report-2024-extract.pdf": annual_report.annual_report,
    "acme-bank/risk-report/board-pack-2025-10.pdf": acme.board_pack,
    "acme-bank/transaction-monitoring/wire-alert-20251104-0117.pdf": acme.wire_alert,
    "acme-bank/transaction-monitoring/sar-memo-2025-1183.pdf": acme.suspicious_activity_memo,
    "acme-bank/transaction-monitoring/account-statement-2025-09.pdf": acme.account_statement,
    "acme-bank/transaction-monitoring/sent again - account statement.pdf": acme.account_statement,
    "acme-bank/transaction-monitoring/cash-deposit-slip-scan.pdf": acme.cash_slip_scan,
    "acme-bank/transaction-monitoring/incoming-wires-2025-10.pdf": acme.broken_upload,
    "acme-bank/customer-screening/northgate-shipping.pdf": acme.company_screening,
    "huaxin-securities/risk-report/合并资产负债表-2024.pdf": huaxin.balance_sheet,
    "huaxin-securities/risk-report/risk-indicators-2025-09.pdf": huaxin.risk_indicators,
    "huaxin-securities/risk-report/loan-contract-2025-0417.pdf": partial(huaxin.loan_contract, huaxin.LOAN_A),
    "huaxin-securities/risk-report/loan-contract-2025-0652.pdf": partial(huaxin.loan_contract, huaxin.LOAN_B),
    "huaxin-securities/transaction-monitoring/large-transaction-20251103-0046.pdf": huaxin.large_transaction_notice,
    "huaxin-securities/transaction-monitoring/suspicious-2025-0061.pdf": huaxin.suspicious_transaction_memo,
    "huaxin-securities/transaction-monitoring/transfer-receipt-scan.pdf": huaxin.transfer_receipt_scan,
    "huaxin-securities/transaction-monitoring/资金流水-2025-10.pdf": huaxin.fund_flow,
    "huaxin-securities/transaction-monitoring/upload-20251107-1530.pdf": bytes,
    "huaxin-securities/customer-screening/kyc-p-2025-33106.pdf": huaxin.person_screening,
    "huaxin-securities/customer-screening/kyc-c-2025-01874.pdf": huaxin.institution_screening,
}


def make_all(inbox: Path) -> list[Path]:
    """Write every made sample under `inbox` and return the paths."""
    paths = []
    for name, maker in MAKERS.items():
        path = inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(maker())
        paths.append(path)
    return paths


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "inbox"
    written = make_all(target)
    print(f"{len(written)} files, {sum(path.stat().st_size for path in written):,} bytes under {target}")
