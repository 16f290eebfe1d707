//! The result as one self-contained HTML page.

use std::fmt::Write as _;

use ogive_text::escape;

use super::output::Answer;

const STYLE: &str = "body{font:14px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\
table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:right;\
border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}";

/// The page.
pub(super) fn html(answer: &Answer) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>ogive sim</title>\
         <style>{STYLE}</style></head><body>\n<h1>ogive sim</h1>\n"
    );
    // Writing to a String cannot fail.
    for line in answer.heading().lines() {
        let _ = writeln!(out, "<p>{}</p>", escape(line));
    }
    out.push_str(&answer.svg());
    out.push_str("<table>\n");
    for (number, row) in answer.cells().iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<{tag}>{}</{tag}>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    for note in answer.notes() {
        let _ = writeln!(out, "<p>Note: {}.</p>", escape(note));
    }
    out.push_str("</body></html>\n");
    out
}
