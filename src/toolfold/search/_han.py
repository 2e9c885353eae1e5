"""Traditional Chinese characters as the word list writes them: simplified.

The table holds the characters of the list's own words and no others; a character that it
does not hold stays as it is.
"""

from __future__ import annotations

__all__ = ["simplified"]

_FORMS = """
    与與 专專 业業 丝絲 两兩 个個箇 为為爲 举舉 么麼麽 义義 乐樂 习習 书書 买買 于於 产產 从從
    仓倉 仪儀 们們 价價 优優 会會 传傳 体體 余餘 你妳 侦偵 储儲 儿兒 兑兌 养養 内內 册冊 写寫
    决決 况況 准準 减減 几幾 凭憑 击擊 划劃 则則 创創 删刪 别別 制製 办辦 务務 动動 势勢 区區
    医醫 升昇 单單 卖賣 占佔 卧臥 卫衛 卷捲 厅廳 历歷曆 厨廚 参參 发發髮 变變 台臺檯 叶葉 号號
    向嚮 吗嗎 启啟啓 员員 周週 响響 团團 园園 围圍 国國 图圖 场場 墙牆 声聲 处處 备備 复復複
    头頭 夹夾 学學 它牠 实實 审審 宾賓 对對 寻尋 导導 将將 尘塵 层層 币幣 布佈 帐帳 帘簾 带帶
    帮幫 并並併 广廣 库庫 应應 废廢 开開 异異 张張 归歸 当當噹 录錄 径徑 忆憶 志誌 态態 总總
    恒恆 戏戲 战戰 户戶 扣釦 执執 扩擴 扫掃 扬揚 护護 报報 拟擬 择擇 换換 据據 摄攝 数數 断斷
    无無 旧舊 时時 显顯 暂暫 术術 机機 权權 条條 来來 构構 标標 栏欄 样樣 档檔 桩樁 检檢 欧歐
    气氣 汇匯彙 汉漢 没沒 注註 洁潔 测測 浏瀏 润潤 温溫 游遊 湿濕溼 滚滾 滤濾 灭滅 灯燈 点點
    炼煉鍊 烦煩 热熱 状狀 环環 现現 电電 画畫 疗療 监監 盗盜 盘盤 着著 码碼 确確 礼禮 离離 种種
    积積 称稱 税稅 竞競 笔筆 筛篩 签簽籤 简簡 类類 紧緊 红紅 约約 级級 纪紀 纬緯 纸紙 线線 组組
    细細 织織 终終 经經 结結 绘繪 给給 络絡 绝絕 统統 继繼 绩績 续續 维維 缓緩 编編 缩縮 缴繳
    网網 职職 联聯 脑腦 脚腳 艺藝 节節 范範 荐薦 药藥 获獲 萤螢 营營 虚虛 虫蟲 装裝 观觀 规規
    视視 览覽 触觸 计計 订訂 认認 讨討 让讓 训訓 议議 讯訊 记記 讲講 许許 论論 设設 访訪 证證
    评評 识識 诉訴 诊診 词詞 译譯 试試 诗詩 话話 询詢 该該 详詳 语語 误誤 说說 请請 读讀 课課
    谁誰 调調 谢謝 谱譜 贝貝 负負 财財 败敗 账賬 货貨 质質 贩販 购購 贴貼 贷貸 费費 赁賃 资資
    赛賽 赞讚贊 趋趨 踪蹤 车車 转轉 轮輪 软軟 载載 较較 辆輛 辑輯 输輸 迁遷 过過 运運 还還 这這
    进進 远遠 连連 迟遲 选選 递遞 邮郵 采採 释釋 里裡裏 鉴鑒鑑 钉釘 钟鐘鍾 钥鑰 钮鈕 钱錢 铁鐵
    银銀 铺鋪 链鏈 销銷 锁鎖 错錯 键鍵 锻鍛 镜鏡 长長 门門 闭閉 问問 闲閒閑 间間 闹鬧 闻聞 阅閱
    阈閾 队隊 阶階 险險 随隨 页頁 顶頂 项項 顺順 须須 顾顧 预預 领領 频頻 题題 颜顏 额額 风風
    飞飛 饭飯 馆館 馈饋 马馬 验驗 骤驟 龄齡 争爭 云雲 关關 后後 听聽 干幹 只隻 系係 猫貓 静靜 篓簍
    搜蒐 表錶
"""
"""A simplified character, and what traditional texts write for it."""


_SIMPLE = {ord(form): simple for simple, *forms in _FORMS.split() for form in forms}


def simplified(text: str) -> str:
    """Return a text in simplified characters, letter for letter."""
    return text.translate(_SIMPLE)
