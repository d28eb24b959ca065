"""Documents of the tenant huaxin-securities: Chinese papers of a securities firm. All names and numbers are invented.

Identity numbers and credit codes have a right check digit and a region that does not exist, so they are nobody's.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from samples import damage
from samples.drawing import Grid, Sheet, Span, money


def _wan(value: Decimal | None) -> str:
    return "" if value is None else money(value)


def balance_sheet() -> bytes:
    """合并资产负债表, 单位：万元: a ruled table whose sums agree (资产 = 负债 + 权益)."""
    sheet = Sheet(language="zh", header="华信实业股份有限公司 2024 年年度报告", footer="合并资产负债表")
    sheet.title("合并资产负债表")
    sheet.paragraph("编制单位：华信实业股份有限公司　　2024年12月31日", align="c")
    rows: list[tuple[str, ...]] = [("项目", "附注", "期末余额", "期初余额")]
    totals = {}
    for name, lines in BALANCE:
        sums = tuple(sum((line[i] for line in lines), Decimal(0)) for i in (2, 3))
        rows.append((f"{name}：", "", "", ""))
        rows += [(f"　{label}", note, _wan(end), _wan(start)) for label, note, end, start in lines]
        rows.append((f"{name}合计", "", *(_wan(amount) for amount in sums)))
        totals[name] = sums
        if name in SUBTOTALS:
            title, parts = SUBTOTALS[name]
            rows.append((title, "", *(_wan(sum((totals[part][i] for part in parts), Decimal(0))) for i in (0, 1))))
    sheet.table(rows, Grid((213, 70, 100, 100), "lcrr", size=9), unit="单位：万元　币种：人民币")
    sheet.paragraph("法定代表人：周启明　　主管会计工作负责人：何婉清　　会计机构负责人：唐立群", size=9)
    return sheet.to_bytes(title="合并资产负债表 2024")


def _lines(*rows: tuple[str, str, str, str]) -> list[tuple[str, str, Decimal, Decimal]]:
    return [(label, note, Decimal(end), Decimal(start)) for label, note, end, start in rows]


BALANCE = [
    (
        "流动资产",
        _lines(
            ("货币资金", "五、1", "128456.32", "109873.45"),
            ("交易性金融资产", "五、2", "35200.00", "42150.00"),
            ("应收票据", "五、3", "8764.51", "10233.87"),
            ("应收账款", "五、4", "96318.27", "88542.90"),
            ("预付款项", "五、5", "12045.66", "9877.31"),
            ("其他应收款", "五、6", "5432.18", "6120.04"),
            ("存货", "五、7", "143987.05", "151276.63"),
        ),
    ),
    (
        "非流动资产",
        _lines(
            ("长期股权投资", "五、8", "24310.00", "22875.50"),
            ("固定资产", "五、9", "215604.39", "208931.12"),
            ("在建工程", "五、10", "31877.94", "26450.08"),
            ("无形资产", "五、11", "40218.76", "41905.33"),
            ("递延所得税资产", "五、12", "6905.21", "6340.77"),
        ),
    ),
    (
        "流动负债",
        _lines(
            ("短期借款", "五、13", "85000.00", "98000.00"),
            ("应付账款", "五、14", "104562.83", "97318.46"),
            ("合同负债", "五、15", "18793.40", "15660.25"),
            ("应付职工薪酬", "五、16", "9124.57", "8806.91"),
            ("应交税费", "五、17", "7651.09", "6987.72"),
        ),
    ),
    (
        "非流动负债",
        _lines(
            ("长期借款", "五、18", "120000.00", "126500.00"),
            ("递延收益", "五、19", "4380.65", "4912.30"),
        ),
    ),
    (
        "所有者权益",
        _lines(
            ("股本", "五、20", "100000.00", "100000.00"),
            ("资本公积", "五、21", "86214.50", "86214.50"),
            ("盈余公积", "五、22", "31507.92", "28433.06"),
            ("未分配利润", "五、23", "167390.28", "138452.37"),
            ("少数股东权益", "五、24", "14495.05", "13291.43"),
        ),
    ),
]
SUBTOTALS = {
    "非流动资产": ("资产总计", ("流动资产", "非流动资产")),
    "非流动负债": ("负债合计", ("流动负债", "非流动负债")),
    "所有者权益": ("负债和所有者权益总计", ("流动负债", "非流动负债", "所有者权益")),
}


def risk_indicators() -> bytes:
    """三线表 without vertical rules: indicators, standard, warning level."""
    sheet = Sheet(language="zh", header="华信证券股份有限公司", footer="风险控制指标监管报表　报送日期：2025年10月15日")
    sheet.title("风险控制指标监管报表")
    sheet.paragraph("报表期间：2025年9月30日　　填报人：沈嘉禾　　复核人：罗承志", align="c")
    amounts = [
        ("核心净资本", "1,284,560.00", "1,251,330.00"),
        ("附属净资本", "420,000.00", "420,000.00"),
        ("净资本", "1,704,560.00", "1,671,330.00"),
    ]
    amounts += [
        ("净资产", "2,115,874.36", "2,080,946.18"),
        ("各项风险资本准备之和", "731,569.10", "742,818.05"),
        ("表内外资产总额", "9,368,402.75", "9,150,377.20"),
    ]
    head = ("项目", "期末余额", "上月末余额")
    sheet.table(
        [head, *amounts],
        Grid((223, 130, 130), "lrr", "three", strong_last=False),
        caption="一、主要金额",
        unit="单位：万元",
    )
    rows: list[tuple[str | Span, ...]] = [
        ("指标", Span("数值", 2), Span("标准", 2)),
        ("", "期末", "上月末", "预警", "监管"),
    ]
    rows += [
        ("风险覆盖率", "233.00%", "225.00%", "≥120%", "≥100%"),
        ("资本杠杆率", "13.71%", "13.68%", "≥9.6%", "≥8%"),
        ("流动性覆盖率", "218.46%", "205.73%", "≥120%", "≥100%"),
        ("净稳定资金率", "147.92%", "146.05%", "≥120%", "≥100%"),
        ("净资本/净资产", "80.56%", "80.32%", "≥24%", "≥20%"),
        ("自营权益类证券/净资本", "18.37%", "19.04%", "≤80%", "≤100%"),
        ("融资（含融券）的金额/净资本", "192.55%", "188.21%", "≤320%", "≤400%"),
    ]
    sheet.table(
        rows,
        Grid((183, 75, 75, 75, 75), "lrrrr", "three", header_rows=2, strong_last=False),
        caption="二、风险控制指标",
    )
    sheet.paragraph(
        "本月各项风险控制指标均符合监管标准，未触及预警标准。融资类业务规模较上月末增加约13.65亿元，"
        "主要因客户两融余额上升。"
    )
    return sheet.to_bytes(title="风险控制指标监管报表 2025-09")


@dataclass(frozen=True)
class Loan:
    """What differs between two contracts of one template."""

    number: str
    amount: str
    in_words: str
    signed: str
    begins: str
    ends: str


LOAN_A = Loan("HX-LD-2025-0417", "3,000,000.00", "叁佰万元整", "2025年4月17日", "2025年4月18日", "2026年4月17日")
LOAN_B = Loan("HX-LD-2025-0652", "30,000,000.00", "叁仟万元整", "2025年6月23日", "2025年6月24日", "2026年6月23日")


def loan_contract(loan: Loan) -> bytes:
    """流动资金借款合同: the same template for each loan, so that only numbers and dates tell two of them apart."""
    sheet = Sheet(language="zh", footer=f"合同编号：{loan.number}")
    sheet.title("流动资金借款合同")
    sheet.paragraph(f"合同编号：{loan.number}", align="r")
    sheet.pairs(
        [
            ("贷款人（甲方）", "华信商业银行股份有限公司滨江支行"),
            ("借款人（乙方）", "宁州恒达精密机械有限公司"),
            ("统一社会信用代码", "91990101MA6T29PQ4C"),
            ("法定代表人", "顾文博"),
            ("住所", "宁州市高新区科创路88号"),
        ],
        label_width=120,
    )
    for heading, clauses in LOAN_CLAUSES:
        sheet.heading(heading, size=10)
        for clause in clauses:
            sheet.paragraph(clause.format(loan=loan), size=9)
    sheet.pairs([("甲方（盖章）：", "乙方（盖章）："), ("授权代表：", "法定代表人：")], label_width=240)
    sheet.paragraph(f"签订日期：{loan.signed}", align="r")
    return sheet.to_bytes(title=f"流动资金借款合同 {loan.number}")


LOAN_CLAUSES = [
    (
        "第一条　借款金额与用途",
        [
            "甲方同意向乙方发放流动资金借款，金额为人民币（小写）{loan.amount}元，（大写）{loan.in_words}。",
            "借款用途为购买原材料。未经甲方书面同意，乙方不得改变借款用途，不得将借款用于股票、期货及房地产投资。",
        ],
    ),
    (
        "第二条　借款期限",
        [
            "借款期限为十二个月，自{loan.begins}起至{loan.ends}止。实际放款日与上述日期不一致的，"
            "以借款凭证所载日期为准。"
        ],
    ),
    (
        "第三条　利率与结息",
        [
            "借款年利率为4.35%，在合同期内固定不变。利息按日计算，日利率为年利率除以360。",
            "按月结息，结息日为每月20日，付息日为结息日的次日。乙方未按期付息的，甲方有权按合同利率加收50%的罚息。",
        ],
    ),
    (
        "第四条　还款",
        [
            "乙方应于借款到期日一次性归还本金，还款账户为乙方在甲方开立的账户6218 9901 0034 5521。",
            "乙方提前还款的，应提前十个工作日书面通知甲方，并按提前归还本金的0.5%支付补偿金。",
        ],
    ),
    (
        "第五条　担保",
        ["本合同项下的债务由宁州恒达控股集团有限公司提供连带责任保证，担保合同另行签订，编号为HX-DB-2025-0093。"],
    ),
    (
        "第六条　财务约定",
        [
            "合同期内乙方的资产负债率不得高于65%，流动比率不得低于1.2。乙方应于每季度结束后30日内向甲方提供财务报表。",
            "乙方单笔对外担保超过净资产10%的，应事先取得甲方书面同意。",
        ],
    ),
    (
        "第七条　违约责任",
        [
            "乙方逾期还款的，自逾期之日起按合同利率加收50%计收罚息，直至清偿本息为止。",
            "乙方挪用借款的，就挪用部分按合同利率加收100%计收罚息，甲方有权宣布借款提前到期。",
        ],
    ),
    (
        "第八条　争议解决",
        [
            "因本合同发生的争议，双方应协商解决；协商不成的，向甲方所在地人民法院提起诉讼。本合同一式两份，"
            "双方各执一份，具有同等法律效力。"
        ],
    ),
]


def large_transaction_notice() -> bytes:
    """大额交易提示: well below 512 tokens."""
    sheet = Sheet(language="zh", header="华信证券 反洗钱监测", footer="提示编号：DE-20251103-0046")
    sheet.title("大额交易提示")
    sheet.pairs(
        [
            ("提示编号", "DE-20251103-0046"),
            ("客户名称", "陆景行"),
            ("客户号", "8800231907"),
            ("资金账号", "3100 5527 8841"),
            ("交易时间", "2025年11月3日 10时26分"),
            ("交易类型", "银证转账（转出）"),
            ("交易金额", "人民币 5,680,000.00 元"),
            ("对方账户", "6218 9904 7712 0038（本人）"),
            ("当日累计转出", "人民币 7,180,000.00 元"),
            ("触发规则", "LT-02 自然人当日累计划转超过50万元"),
        ],
        label_width=120,
        ruled=True,
    )
    sheet.paragraph(
        "该客户近六个月日均转出金额为人民币86,400.00元，本次金额明显高于历史水平。请于2025年11月5日前完成核查。"
    )
    return sheet.to_bytes(title="大额交易提示 DE-20251103-0046")


def suspicious_transaction_memo() -> bytes:
    """可疑交易报告要点: prose and a small table."""
    sheet = Sheet(language="zh", header="华信证券 合规管理部", footer="编号：STR-2025-0061　内部资料 注意保密")
    sheet.title("可疑交易报告要点")
    sheet.paragraph("报告编号：STR-2025-0061　　报告日期：2025年10月30日　　经办人：温若琳")
    sheet.paragraph(
        "客户宁州云帆商贸有限公司（统一社会信用代码91990102MA3W51HD01）于2025年9月18日开户，注册资本100万元。"
        "2025年10月13日至10月24日，该账户分四笔转入资金合计人民币12,860,000.00元，仅买卖一只债券后即全部转出，"
        "持有期不超过两日。"
    )
    deposits = [
        ("2025-10-13", "宁州远图科技有限公司", "3,200,000.00"),
        ("2025-10-16", "宁州远图科技有限公司", "2,960,000.00"),
    ]
    deposits += [("2025-10-21", "宁州澜沧贸易行", "4,500,000.00"), ("2025-10-24", "宁州澜沧贸易行", "2,200,000.00")]
    rows = [("日期", "转入方", "金额（元）"), *deposits, ("合计", "", "12,860,000.00")]
    sheet.table(rows, Grid((110, 200, 120), "llr"))
    sheet.paragraph(
        "两家转入方的法定代表人为同一人。交易与客户经营规模明显不符，疑似利用债券交易转移资金。"
        "建议：上报可疑交易，并将客户风险等级调整为高。"
    )
    return sheet.to_bytes(title="可疑交易报告要点 STR-2025-0061")


def transfer_receipt_scan() -> bytes:
    """银行电子回单, image only."""
    sheet = Sheet(language="zh", size=(595, 400))
    sheet.title("华信商业银行 电子回单")
    slip = [
        ("回单编号", "20251016000318847"),
        ("交易日期", "2025年10月16日"),
        ("付款人", "宁州远图科技有限公司"),
        ("付款账号", "6218 9907 2230 1145"),
    ]
    slip += [
        ("收款人", "宁州云帆商贸有限公司"),
        ("收款账号", "6218 9901 5580 6672"),
        ("金额（小写）", "¥2,960,000.00"),
        ("金额（大写）", "贰佰玖拾陆万元整"),
        ("用途", "货款"),
    ]
    sheet.pairs(slip, label_width=120, ruled=True)
    return damage.scanned(sheet.to_bytes(title="电子回单"), skew_degrees=-0.25)


#: The days of October 2025 on which the exchanges were open.
TRADING_DAYS = (9, 10, 13, 14, 15, 16, 17, 20, 21, 22, 23, 24, 27, 28, 29, 30, 31)


def fund_flow() -> bytes:
    """资金流水: a ruled table over page breaks, its header repeated; 期初 + 转入 − 转出 = 期末."""
    sheet = Sheet(language="zh", header="华信证券股份有限公司", footer="资金账号 3100 5527 8841　资金流水 2025年10月")
    sheet.title("客户资金流水")
    kinds = [
        ("证券买入", -1),
        ("证券卖出", 1),
        ("银证转入", 1),
        ("证券买入", -1),
        ("红利入账", 1),
        ("银证转出", -1),
        ("融资利息", -1),
    ]
    names = ["北岭电力", "江海港务", "", "东岭铜业", "江海港务", "", ""]
    opening = balance = Decimal("1250300.55")
    rows = [
        ("日期", "摘要", "证券名称", "转入（元）", "转出（元）", "余额（元）"),
        ("2025-10-09", "期初余额", "", "", "", money(balance)),
    ]
    paid = {1: Decimal(0), -1: Decimal(0)}
    for index in range(58):
        kind, sign = kinds[index % 7]
        scale = {"红利入账": 7, "融资利息": 3}.get(kind, 131)
        amount = Decimal((index * 7919 + 3571) % 9973 * scale) / 10 + Decimal("0.37")
        balance += sign * amount
        paid[sign] += amount
        cells = (money(amount), "") if sign > 0 else ("", money(amount))
        rows.append((f"2025-10-{TRADING_DAYS[index * 17 // 58]:02d}", kind, names[index % 7], *cells, money(balance)))
    rows.append(
        ("2025-10-31", "合计及期末余额", "", money(paid[1]), money(paid[-1]), money(opening + paid[1] - paid[-1]))
    )
    sheet.pairs(
        [("客户名称", "陆景行"), ("资金账号", "3100 5527 8841"), ("查询期间", "2025年10月9日至2025年10月31日")],
        label_width=80,
    )
    sheet.table(rows, Grid((68, 95, 80, 80, 80, 80), "lllrrr", size=8.5))
    return sheet.to_bytes(title="客户资金流水 2025-10")


def person_screening() -> bytes:
    """个人客户身份识别表."""
    sheet = Sheet(language="zh", header="华信证券 客户尽职调查", footer="编号：KYC-P-2025-33106")
    sheet.title("个人客户身份识别表")
    sheet.pairs(
        [
            ("姓名", "林知夏"),
            ("性别", "女"),
            ("国籍", "中国"),
            ("证件类型", "居民身份证"),
            ("证件号码", "990101198503120416"),
            ("证件有效期", "2018年6月5日至2038年6月5日"),
            ("职业", "医药企业区域销售经理"),
            ("联系地址", "宁州市东湖区梧桐路12号3栋1602室"),
            ("年收入", "人民币 420,000.00 元"),
            ("资金来源", "工资收入、房产出售所得"),
            ("开户日期", "2025年11月6日"),
        ],
        label_width=120,
        ruled=True,
    )
    checks = [("制裁名单", "未命中", "—"), ("政治公众人物", "疑似命中", "78%"), ("负面新闻", "未命中", "—")]
    sheet.table(
        [("筛查项目", "结果", "相似度"), *checks], Grid((160, 160, 120), "lcr", strong_last=False), caption="名单筛查"
    )
    sheet.paragraph(
        "疑似命中对象为同名的某省卫生部门原副职人员，出生日期为1961年4月2日，与客户不符，已排除。"
        "客户风险等级：中。下次审核日期：2027年11月6日。"
    )
    return sheet.to_bytes(title="个人客户身份识别表 KYC-P-2025-33106")


def institution_screening() -> bytes:
    """机构客户受益所有人识别表: owners over two levels."""
    sheet = Sheet(language="zh", header="华信证券 客户尽职调查", footer="编号：KYC-C-2025-01874")
    sheet.title("机构客户受益所有人识别表")
    sheet.pairs(
        [
            ("机构名称", "沧江新能源科技有限公司"),
            ("统一社会信用代码", "91990100MA1FX83K7Y"),
            ("成立日期", "2016年8月22日"),
            ("注册资本", "人民币 5,000 万元"),
            ("注册地址", "宁州市高新区光谷大道6号"),
            ("法定代表人", "程远"),
            ("法定代表人证件号码", "990102197611052336"),
            ("经营范围", "光伏组件的研发、生产与销售"),
        ],
        label_width=130,
        ruled=True,
    )
    owners = [
        ("程远", "直接持股", "38.00%", "中国", "是"),
        ("沧江产业投资合伙企业", "直接持股", "35.00%", "中国", "否"),
    ]
    owners += [("郑晓岚", "通过合伙企业间接持股", "27.00%", "中国", "是")]
    rows = [("股东或受益所有人", "持股方式", "比例", "国籍", "受益所有人"), *owners, ("合计", "", "100.00%", "", "")]
    sheet.table(rows, Grid((150, 140, 60, 60, 73), "llrcc"), caption="股权结构")
    sheet.paragraph("经筛查，上述人员均未命中制裁名单和政治公众人物名单。客户风险等级：低。识别日期：2025年9月26日。")
    return sheet.to_bytes(title="机构客户受益所有人识别表 KYC-C-2025-01874")
