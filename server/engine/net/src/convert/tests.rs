//! Pages and the Markdown made of them.

use super::*;

fn convert(html: &str) -> ConvertedPage {
    to_markdown(html, &Url::parse("https://example.com/docs/page.html").unwrap(), 100_000)
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(convert(html).text, expected, "{html}");
}

#[test]
fn a_page_becomes_its_main_part_as_markdown() {
    let page = include_str!("tests/page.html");
    let converted = convert(page);
    assert_eq!(converted.title.as_deref(), Some("Parsing & printing – The Guide"));
    assert!(!converted.is_cut);
    assert_eq!(converted.text, include_str!("tests/page.md").trim_end());
}

#[test]
fn text_flows_and_inline_elements_are_marked() {
    check("a\n  b&nbsp;c &lt;d&gt; <b>e </b>f<i> g</i>", "a b\u{a0}c <d> **e** f *g*");
    check("<p>a<p>b<br>c<div>d</div>e", "a\n\nb\nc\n\nd\n\ne");
    check("x<b></b><a href=/y></a><code>let a</code>.", "x`let a`.");
    check("<b>a<p>b</b>c", "**a**\n\n**b**c");
    check("<h2>a<br>b</h2>c<hr>d", "## a b\n\nc\n\n---\n\nd");
    check("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc");
}

#[test]
fn links_are_absolute_and_lead_somewhere() {
    check("<a href='../a b?c=(d)#e'>f</a>", "[f](https://example.com/a%20b?c=%28d%29#e)");
    check("<base href='https://other.example/x/'><a href=y>z</a>", "[z](https://other.example/x/y)");
    check("<a href='javascript:alert(1)'>a</a> <a href='data:,x'>b</a> <a href='#top'>c</a>", "a b c");
    check("<a href=/x><h3>A</h3>b</a>", "### [A](https://example.com/x)\n\nb");
    check("<a href=/1>a<a href=/2>b", "[a](https://example.com/1)[b](https://example.com/2)");
}

#[test]
fn images_are_their_descriptions_and_text_makes_none() {
    check("a<img src='https://evil.example/?q' alt=' a cat '>b<img src=x>", "a (image: a cat) b");
    check("![x](https://evil.example/?q)", "!\\[x](https://evil.example/?q)");
}

#[test]
fn lists_are_nested_and_numbered() {
    check(
        "<ul><li>a<li><p>b</p><p>c</p><ol><li>d</li><li>e</ol></ul>f",
        "- a\n- b\n\n  c\n\n  1. d\n  2. e\n\nf",
    );
    check("<ol><li><ul><li>a</ul><li>b</ol>", "   - a\n2. b");
    check("<li>a</li><dl><dt>b<dd>c</dl>", "- a\n\nb\nc");
}

#[test]
fn code_keeps_its_white_space() {
    check(
        "<p>a<pre><code class='x language-rust'>fn a() {\n    ![b]\n}\n</code></pre>c",
        "a\n\n```rust\nfn a() {\n    ![b]\n}\n```\n\nc",
    );
    check("<pre>\n```\nx <b>y</b>\n</pre>", "````\n```\nx y\n````");
    check("<ul><li>a<pre>b\n c</pre></ul>", "- a\n\n  ```\n  b\n   c\n  ```");
}

#[test]
fn tables_are_tables_unless_they_are_the_layout() {
    check(
        "x<table><caption>T</caption><tr><th>a<th>b</tr><tr><td><p>1|2</p><p>3<td></table>y",
        "x\n\nT\n| a | b |\n|---|---|\n| 1\\|2 3 | |\n\ny",
    );
    check("<table><tr><td><table><tr><td>a<td>b</table><td>c</table>", "|\n\n| a | b |\n|---|---|\n\nc");
}

#[test]
fn what_no_reader_sees_or_came_for_is_left_out() {
    for html in [
        "<script>if (a < b) { x('</p>') }</script>",
        "<style>p { color: red }</style><noscript>x</noscript><template>x</template>",
        "<nav>x<nav>y</nav>z</nav><header><p>x</header><footer>x</footer><aside>x</aside>",
        "<div role=navigation>x<div>y</div></div><svg><title>x</title><path/><text>x</text></svg>",
        "<p hidden>x<b>y</b></p><div style='color: red; Display : None'>x</div><span aria-hidden=true>x</span>",
        "<p style='visibility:hidden'>x<div style='font-size:0'>x</div><select><option>x</select><button>x</button>",
        "<!-- x --><input type=hidden value=x><textarea><b>x</b></textarea><iframe>x</iframe>",
    ] {
        check(&format!("a {html}<p>b"), "a\n\nb");
    }
    check("<main><header><h1>a</h1></header>b<nav>x</nav></main><footer>x</footer>", "# a\n\nb");
    check("<ul><li hidden>x<ul><li>y</ul><li>a</ul>b", "- a\n\nb");
    check("<ul><li hidden>x</ul>b<div><p hidden>x</div>c", "b\n\nc");
}

#[test]
fn a_page_that_is_all_frame_is_kept() {
    check(
        "<body style='visibility:hidden'><header><h1>a</h1></header><nav>b</nav><script>x</script>",
        "# a\n\nb",
    );
}

#[test]
fn hostile_structure_costs_no_more_than_its_length() {
    let times = |text: &str, count| text.repeat(count);
    for html in [
        times("<div>", 300_000),
        times("<b><p><i x=1><table><td>", 40_000),
        times("<ul><li>", 100_000),
        times("<blockquote>", 100_000),
        times("<a href=x><b>", 100_000),
        times("</p></b></table></ul></blockquote>", 40_000),
        times("<nav><p hidden>", 100_000),
        format!("<table>{}", times("<tr><td>", 100_000)),
    ] {
        let converted = convert(&format!("a{html}"));
        assert!(converted.text.starts_with('a') && converted.text.len() < 8 * html.len());
    }
    let deep = convert(&format!("{}a", times("<ul><li><blockquote>", 10_000)));
    assert!(deep.text.ends_with('a') && deep.text.len() < 1_000_000, "{}", deep.text.len());
}

#[test]
fn a_long_page_is_not_read_to_its_end() {
    let converted =
        to_markdown(&"<p>word".repeat(200_000), &Url::parse("https://example.com/").unwrap(), 1_000);
    assert!(converted.is_cut && converted.text.len() < 100_000);
}
