// SPDX-License-Identifier: Apache-2.0
#include "report/html_p.h"

namespace muster::report {

const std::string_view htmlStyle = R"CSS(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1b;--dim:#595959;--line:#d0d0d0;--head:#f2f2f2;--link:#00508c}
@media (prefers-color-scheme:dark){:root{--bg:#1b1c1e;--fg:#e8e8e8;--dim:#a8a8a8;--line:#44474c;--head:#26282b;--link:#7cc0ff}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,"Noto Sans","Noto Sans CJK SC","Microsoft YaHei",sans-serif}
html[data-lang="en"] [lang="zh-CN"],html[data-lang="zh_CN"] [lang="en"]{display:none}
h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
nav{float:right}nav button{margin-left:.3rem}
.badge{display:inline-block;padding:.15rem .7rem;border-radius:.3rem;color:#fff;font-weight:600;background:#595959}
.badge.ALIGNED{background:#00664d}.badge.MISALIGNED{background:#b3261e}.badge.INCOMPLETE{background:#8a5a00}
.dim{color:var(--dim)}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.4rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{background:var(--head)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--head);padding:.6rem;border-radius:.3rem;font-size:.85rem}
svg{max-width:100%;height:auto;display:block}
figure{margin:.6rem 0}figcaption{color:var(--dim);font-size:.9rem}
.legend span.key{display:inline-block;width:.9em;height:.9em;margin:0 .3em 0 .9em;vertical-align:-.1em}
#samples th button{all:unset;cursor:pointer;font-weight:600}
#samples th button:focus-visible{outline:2px solid var(--link)}
#samples td{max-width:22rem;overflow-wrap:anywhere}
#samples tr.bad td:first-child{border-left:4px solid #b3261e}
.bar{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.4rem 0}
input,select,button{font:inherit;padding:.15rem .5rem}
@media print{nav,.bar{display:none}body{max-width:none;font-size:10pt;background:#fff;color:#000}h2{break-after:avoid}figure,tr{break-inside:avoid}details{display:block}a{color:inherit}}
)CSS";

const std::string_view htmlScript = R"JS(
(function () {
  "use strict";
  var root = document.documentElement;
  function byId(id) { return document.getElementById(id); }
  var buttons = document.querySelectorAll("nav button[data-lang]");
  for (var b = 0; b < buttons.length; b++) {
    buttons[b].addEventListener("click", function (event) {
      root.setAttribute("data-lang", event.currentTarget.getAttribute("data-lang"));
      render();
    });
  }
  var data = JSON.parse(byId("data").textContent);
  var columns = data.columns;
  var rows = data.rows;
  var order = new Uint32Array(rows.length);
  var shown = 0;
  var page = 0;
  var sortBy = 0;
  var isFalling = false;
  function isChinese() { return root.getAttribute("data-lang") === "zh_CN"; }
  function nameOf(column) { return isChinese() ? column.zh : column.en; }
  function text(value, column) {
    if (value === null || value === undefined) return "";
    if (column.ref) return data.texts[value];
    return typeof value === "number" && column.digits !== undefined ? value.toFixed(column.digits) : String(value);
  }
  function filter() {
    var wanted = byId("search").value.toLocaleLowerCase();
    var state = byId("state").value;
    var scoreAt = data.scoreColumn;
    shown = 0;
    for (var i = 0; i < rows.length; i++) {
      var row = rows[i];
      if (state !== "all") {
        var isMissing = row[columns.length] !== 0;
        if (state === "missing" && !isMissing) continue;
        if (state === "right" && (isMissing || scoreAt < 0 || row[scoreAt] !== 1)) continue;
        if (state === "wrong" && (isMissing || scoreAt < 0 || row[scoreAt] === 1)) continue;
      }
      if (wanted !== "") {
        var isFound = false;
        for (var c = 0; c < columns.length && !isFound; c++) {
          isFound = text(row[c], columns[c]).toLocaleLowerCase().indexOf(wanted) >= 0;
        }
        if (!isFound) continue;
      }
      order[shown++] = i;
    }
    sort();
  }
  function sort() {
    var column = columns[sortBy];
    var sign = isFalling ? -1 : 1;
    var part = Array.prototype.slice.call(order.subarray(0, shown));
    part.sort(function (a, b) {
      var x = rows[a][sortBy];
      var y = rows[b][sortBy];
      if (column.ref) { x = data.texts[x]; y = data.texts[y]; }
      if (x === y) return a - b;
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : 1) * sign;
    });
    order.set(part);
    page = 0;
    render();
  }
  function render() {
    var size = Number(byId("size").value);
    var pages = Math.max(1, Math.ceil(shown / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    var head = byId("samples-head");
    var body = byId("samples-body");
    head.textContent = "";
    body.textContent = "";
    var line = document.createElement("tr");
    columns.forEach(function (column, c) {
      var cell = document.createElement("th");
      cell.scope = "col";
      if (column.number) cell.className = "n";
      if (c === sortBy) cell.setAttribute("aria-sort", isFalling ? "descending" : "ascending");
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = nameOf(column) + (c === sortBy ? (isFalling ? " ▼" : " ▲") : "");
      button.addEventListener("click", function () {
        isFalling = sortBy === c ? !isFalling : false;
        sortBy = c;
        sort();
      });
      cell.appendChild(button);
      line.appendChild(cell);
    });
    head.appendChild(line);
    for (var i = page * size; i < Math.min(shown, (page + 1) * size); i++) {
      var row = rows[order[i]];
      var tr = document.createElement("tr");
      if (row[columns.length] !== 0 || (data.scoreColumn >= 0 && row[data.scoreColumn] !== 1)) tr.className = "bad";
      for (var c = 0; c < columns.length; c++) {
        var td = document.createElement("td");
        if (columns[c].number) td.className = "n";
        td.textContent = text(row[c], columns[c]);
        tr.appendChild(td);
      }
      body.appendChild(tr);
    }
    byId("place").textContent = isChinese()
      ? "第 " + (page + 1) + " / " + pages + " 页，共 " + shown + " / " + rows.length + " 条"
      : "page " + (page + 1) + " of " + pages + ", " + shown + " of " + rows.length + " samples";
    byId("back").disabled = page === 0;
    byId("on").disabled = page >= pages - 1;
  }
  var timer = 0;
  byId("search").addEventListener("input", function () { clearTimeout(timer); timer = setTimeout(filter, 150); });
  byId("state").addEventListener("change", filter);
  byId("size").addEventListener("change", render);
  byId("back").addEventListener("click", function () { page--; render(); });
  byId("on").addEventListener("click", function () { page++; render(); });
  filter();
})();
)JS";

} // namespace muster::report
