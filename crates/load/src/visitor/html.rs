//! Just enough HTML to find forms: start and end tags with their attributes, and the text between them.

use super::entity::named;

/// A piece of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// `<name a=b>`; the name in lower case.
    Open(String, Attributes),
    /// `</name>`; the name in lower case.
    Close(String),
    /// Text as it stands; character references are not decoded.
    Text(&'a str),
}

/// The attributes of a tag; names in lower case, values decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Returns the value of the first attribute of this name; empty for an attribute without a value.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the attribute is present.
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }
}

/// Reads a page piece by piece, as a browser without scripts does. It skips comments and content that is not shown:
/// `script`, `style` and others, whose text is not markup, and `template`, whose markup is not part of the page (WHATWG
/// HTML §4.12.3). It keeps the content of `noscript`.
pub struct Pieces<'a> {
    rest: &'a str,
    /// The element that has just begun, if its content is text up to its end tag.
    text_of: Option<&'static str>,
    /// The text of the `script` that has just begun.
    code: &'a str,
    /// The templates around the current position, outermost first; true if the content is not part of the page.
    templates: Vec<bool>,
}

/// Elements whose content is text that is shown or sent: RCDATA (WHATWG HTML §13.1.2).
const TEXTS: [&str; 2] = ["textarea", "title"];
/// Elements whose content is text that is not shown.
const UNSEEN: [&str; 5] = ["script", "style", "iframe", "noembed", "noframes"];

impl<'a> Pieces<'a> {
    /// Starts at the beginning of `page`.
    pub fn of(page: &'a str) -> Self {
        Pieces { rest: page, text_of: None, code: "", templates: Vec::new() }
    }

    /// Returns the text of the script whose start tag was the last piece; empty after other pieces.
    pub fn code(&self) -> &'a str {
        self.code
    }

    fn skip_past(&mut self, end: &str) {
        self.rest = self.rest.split_once(end).map_or("", |(_, rest)| rest);
    }

    /// Skips the rest of a comment (WHATWG HTML §13.2.5.43 and on): `<!-->` and `<!--->` are complete ones.
    fn skip_comment(&mut self) {
        let rest = self.rest;
        let short = rest.strip_prefix('>').or_else(|| rest.strip_prefix("->"));
        let ends = ["-->", "--!>"].into_iter().filter_map(|end| Some((rest.find(end)?, end.len())));
        self.rest = short.unwrap_or_else(|| ends.min().map_or("", |(at, length)| &rest[at + length..]));
    }

    /// Takes the text before the end tag of `name`, and leaves the end tag.
    fn take_until_end_of(&mut self, name: &str) -> &'a str {
        let rest = self.rest;
        let ends = |at: &usize| {
            let tag = rest.as_bytes()[at + 2..].split_at_checked(name.len());
            tag.is_some_and(|(found, after)| {
                let is_whole = after.first().is_none_or(|next| next.is_ascii_whitespace() || b"/>".contains(next));
                is_whole && found.eq_ignore_ascii_case(name.as_bytes())
            })
        };
        let end = rest.match_indices("</").map(|(at, _)| at).find(ends).unwrap_or(rest.len());
        let (text, after) = rest.split_at(end);
        self.rest = after;
        text
    }

    fn open(&mut self) -> Piece<'a> {
        let end = self.rest.find(|c: char| c.is_ascii_whitespace() || c == '>' || c == '/').unwrap_or(self.rest.len());
        let name = self.rest[..end].to_ascii_lowercase();
        let (attributes, rest) = attributes(&self.rest[end..]);
        self.rest = rest;
        self.text_of = TEXTS.into_iter().find(|text| *text == name);
        if UNSEEN.contains(&name.as_str()) {
            let text = self.take_until_end_of(&name);
            self.code = if name == "script" { text } else { "" };
            self.skip_past(">");
        }
        Piece::Open(name, attributes)
    }

    /// Returns the next piece, including pieces inside templates.
    fn piece(&mut self) -> Option<Piece<'a>> {
        self.code = "";
        if let Some(name) = self.text_of.take() {
            let text = self.take_until_end_of(name);
            if !text.is_empty() {
                return Some(Piece::Text(text));
            }
        }
        loop {
            let at = self.rest.find('<').unwrap_or(self.rest.len());
            if at > 0 {
                let (text, rest) = self.rest.split_at(at);
                self.rest = rest;
                return Some(Piece::Text(text));
            }
            self.rest = self.rest.strip_prefix('<')?;
            if let Some(rest) = self.rest.strip_prefix("!--") {
                self.rest = rest;
                self.skip_comment();
            } else if let Some(rest) = self.rest.strip_prefix('/') {
                let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len());
                self.skip_past(">");
                return Some(Piece::Close(rest[..end].to_ascii_lowercase()));
            } else if self.rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Some(self.open());
            } else if self.rest.starts_with(['!', '?']) {
                self.skip_past(">");
            } else {
                return Some(Piece::Text("<"));
            }
        }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let piece = self.piece()?;
            let is_inert = self.templates.contains(&true);
            match &piece {
                // A template that declares a shadow root is shown.
                Piece::Open(name, tag) if name == "template" => {
                    let shown = tag
                        .value("shadowrootmode")
                        .is_some_and(|mode| ["open", "closed"].iter().any(|known| mode.eq_ignore_ascii_case(known)));
                    self.templates.push(!shown);
                }
                Piece::Close(name) if name == "template" => {
                    self.templates.pop();
                }
                _ if is_inert => {}
                _ => return Some(piece),
            }
        }
    }
}

/// Reads attributes up to the `>` that ends the tag; returns them and the rest of the page.
fn attributes(mut rest: &str) -> (Attributes, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (Attributes(found), rest.strip_prefix('>').unwrap_or(rest));
        }
        // A name may begin with `=`, but has at least one character, so the loop always advances.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let ends = |c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/');
        let end = rest[first..].find(ends).map_or(rest.len(), |at| at + first);
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        let value = match rest.strip_prefix('=') {
            Some(after) => {
                let (value, after) = value(after.trim_start_matches(|c: char| c.is_ascii_whitespace()));
                rest = after;
                decode(value)
            }
            None => String::new(),
        };
        found.push((name, value));
    }
}

fn value(rest: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some(inner) = rest.strip_prefix(quote) {
            return inner.split_once(quote).unwrap_or((inner, ""));
        }
    }
    rest.split_at(rest.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(rest.len()))
}

/// Decodes character references: numeric ones, and the named ones that are common. Leaves others unchanged.
pub fn decode(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        rest = &rest[at..];
        let reference = rest[1..].split_once(';').map(|(name, _)| name).filter(|name| name.len() <= 8);
        if let Some((name, character)) = reference.and_then(|name| character(name).map(|c| (name, c))) {
            decoded.push(character);
            rest = &rest[name.len() + 2..];
        } else {
            decoded.push('&');
            rest = &rest[1..];
        }
    }
    decoded.push_str(rest);
    decoded
}

fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else { return named(name) };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    code.ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_tag(text: &str) -> Attributes {
        match Pieces::of(text).next() {
            Some(Piece::Open(_, attributes)) => attributes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn attributes_may_be_written_in_every_way() {
        let tag = only_tag("<INPUT Type = 'hidden' name=csrf\n value=\"a &quot;b&quot;\" required data-x=a/b />");
        assert_eq!(tag.value("type"), Some("hidden"));
        assert_eq!(tag.value("name"), Some("csrf"));
        assert_eq!(tag.value("value"), Some("a \"b\""));
        assert_eq!(tag.value("data-x"), Some("a/b"));
        assert!(tag.has("required") && !tag.has("disabled"));
    }

    #[test]
    fn a_quoted_value_may_hold_what_would_end_a_tag() {
        assert_eq!(only_tag("<a title='x > y' href=z>").value("href"), Some("z"));
        assert_eq!(only_tag("<a title='never closed>").value("title"), Some("never closed>"));
    }

    #[test]
    fn comments_scripts_and_styles_hold_no_tags() {
        let page = "<!doctype html><!-- <form> --><script>'<form>'</SCRIPT ><style>a<b</style><p>1 < 2</p>";
        let names: Vec<_> = Pieces::of(page)
            .filter_map(|piece| match piece {
                Piece::Open(name, _) => Some(name),
                Piece::Close(name) => Some(format!("/{name}")),
                Piece::Text(_) => None,
            })
            .collect();
        assert_eq!(names, ["script", "style", "p", "/p"]);
    }

    /// Returns what is left of a page: tags, and text in brackets.
    fn left(page: &str) -> String {
        let told = |piece| match piece {
            Piece::Open(name, _) => format!("<{name}>"),
            Piece::Close(name) => format!("</{name}>"),
            Piece::Text(text) => format!("[{text}]"),
        };
        Pieces::of(page).map(told).collect()
    }

    /// Red without `templates`: markup that a script would copy is not a form to fill in.
    #[test]
    fn a_template_is_no_part_of_the_page() {
        assert_eq!(left("a<template><form></template>b"), "[a][b]");
        assert_eq!(left("<TEMPLATE id=x><p><template><i></template><form></Template ><b>"), "<b>");
        assert_eq!(left("<template><!-- </template> --><script>'</template>'</script><form></template><b>"), "<b>");
        assert_eq!(left("<template><title></template></title><form></template><b>"), "<b>");
        assert_eq!(left("<template><form>"), "", "never closed");
        assert_eq!(left("</template><b>"), "<b>", "never opened");
        let shadow = "<template shadowrootmode=Open><form></template><template shadowrootmode=x><i></template>";
        assert_eq!(left(shadow), "<form>", "a shadow root is shown");
    }

    #[test]
    fn without_scripts_noscript_is_shown() {
        // Red where it is left out, as in a browser with scripts.
        assert_eq!(left("<noscript><form><input></form></noscript>"), "<noscript><form><input></form></noscript>");
    }

    /// Red without `TEXTS`: an example in an editable text is not a form.
    #[test]
    fn what_is_in_a_title_or_a_text_area_is_text() {
        assert_eq!(left("<title>a <b> c</title><p>"), "<title>[a <b> c]</title><p>");
        let area = "<textarea name=t></textareas><form><!-- x --></TextArea ><input>";
        assert_eq!(left(area), "<textarea>[</textareas><form><!-- x -->]</textarea><input>");
        assert_eq!(left("<title></title>x<textarea>è<form"), "<title></title>[x]<textarea>[è<form]");
        assert_eq!(left("<iframe><form></iframe><script>'</scripts><i>'</script><p>"), "<iframe><script><p>");
    }

    /// Red without `skip_comment`: a comment continues past its end up to the next comment, with the form in between.
    #[test]
    fn a_comment_ends_where_it_does_in_a_browser() {
        for page in ["<!--><p><!-- x -->", "<!---><p><!-- x -->", "<!-- x --!><p><!-- y -->", "<!-- - -- > <i> --><p>"]
        {
            assert_eq!(left(page), "<p>", "{page}");
        }
        assert_eq!(left("<!-- x > <p>"), "");
    }

    #[test]
    fn character_references_are_decoded_and_the_rest_is_left() {
        assert_eq!(decode("a=1&amp;b=2&#38;c&#x3D;3&apos;&lt;&gt;"), "a=1&b=2&c=3'<>");
        assert_eq!(decode("a=1&b=2;&unknown;&#xzz;&"), "a=1&b=2;&unknown;&#xzz;&");
        assert_eq!(decode("è&amp;ü"), "è&ü");
        // Red with the names of XML alone: a button "Best&auml;tigen" is not understood.
        assert_eq!(
            decode("Best&auml;tigen&hellip; &laquo;&Eacute;&raquo;&nosuch;&Auml"),
            "Bestätigen… «É»&nosuch;&Auml"
        );
    }

    #[test]
    fn a_page_that_is_cut_off_ends_quietly() {
        for page in ["<", "</", "<!--", "<a", "<a b", "<a b=", "<a b='", "<script>", "<é", "<a é=ü"] {
            assert!(Pieces::of(page).count() <= 2, "{page}");
        }
    }
}
