//! Outside text in a page or a picture.

/// Escapes text for HTML and XML (SVG), as content and in attributes with either kind of quotes.
///
/// Control characters become blanks, because XML cannot represent them; line feeds and tabs stay.
/// See "Character Data and Markup" in the XML specification and "Escaping a string" in HTML's.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_contains_no_markup() {
        assert_eq!(
            escape("<b title=\"x\" id='y'>&amp;"),
            "&lt;b title=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;"
        );
        assert_eq!(escape("\u{1b}[31mé\u{0}\n\tλ\u{85}"), " [31mé \n\tλ ");
    }
}
