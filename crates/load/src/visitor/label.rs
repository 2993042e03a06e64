//! The text that a person reads beside a choice: a `label` around it or naming its `id`, or else the text after it.

use super::html::{Attributes, decode};

/// The labels of a page.
#[derive(Debug, Default)]
pub(super) struct Labels {
    all: Vec<Label>,
    /// The label whose text is being read.
    current: Option<usize>,
}

#[derive(Debug)]
struct Label {
    /// The `id` that it names.
    of: Option<String>,
    /// True if it is the text that follows a choice, up to the next tag.
    is_loose: bool,
    text: String,
}

impl Labels {
    /// Processes a start tag.
    pub(super) fn open(&mut self, name: &str, tag: &Attributes) {
        self.end_loose();
        if name == "label" {
            self.begin(Label { of: tag.value("for").map(str::to_owned), is_loose: false, text: String::new() });
        }
    }

    /// Processes an end tag.
    pub(super) fn close(&mut self, name: &str) {
        self.end_loose();
        if name == "label" {
            self.current = None;
        }
    }

    /// Processes a text.
    pub(super) fn read(&mut self, text: &str) {
        if let Some(label) = self.current.and_then(|at| self.all.get_mut(at)) {
            label.text.push_str(text);
        }
    }

    /// Returns a key for the text beside the choice that begins with this tag: the text may still follow.
    pub(super) fn beside(&mut self, tag: &Attributes) -> String {
        let at = match self.current {
            Some(at) => at,
            None => self.begin(Label { of: None, is_loose: true, text: String::new() }),
        };
        format!("{at} {}", tag.value("id").unwrap_or_default())
    }

    /// Returns the text for a key.
    pub(super) fn text(&self, key: &str) -> String {
        let Some((at, id)) = key.split_once(' ') else { return String::new() };
        let named = self.all.iter().find(|label| !id.is_empty() && label.of.as_deref() == Some(id));
        let around = || at.parse::<usize>().ok().and_then(|at| self.all.get(at));
        let text = named.or_else(around).map(|label| decode(&label.text)).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    fn begin(&mut self, label: Label) -> usize {
        self.all.push(label);
        let at = self.all.len() - 1;
        self.current = Some(at);
        at
    }

    fn end_loose(&mut self) {
        if self.current.and_then(|at| self.all.get(at)).is_some_and(|label| label.is_loose) {
            self.current = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::visitor::page::Page;

    /// Red where only the value is checked: a choice was sent although everybody reads that it is a no.
    #[test]
    fn a_choice_is_made_by_what_is_read_beside_it() {
        for (form, body) in [
            (
                "<label><input type=radio name=d value=a> No</label><label><input type=radio name=d value=b> Yes</label>",
                "d=b",
            ),
            ("<input type=radio name=d value=n checked> No <input type=radio name=d value=y> Yes<br>", "d=y"),
            (
                "<label for=y>Allow it</label><label for=x>Deny</label><input type=radio name=d value=0 id=x>\
              <input type=radio name=d value=1 id=y>",
                "d=1",
            ),
            (
                "<input type=radio name=d value=0 id=x><label for=x>Deny</label><input type=radio name=d value=1 id=y>\
              <label for=y>Allow</label>",
                "d=1",
            ),
            (
                "<label>No <input type=radio name=d value=0></label><label>Yes <input type=radio name=d value=1></label>",
                "d=1",
            ),
            ("<select name=d><option value=no>Deny<option value=yes>Allow</select>", "d=yes"),
            ("<select name=d><option value=0>Ablehnen</option><option value=1>Erlauben</option></select>", "d=1"),
            (
                "<select name=d><option value=0 selected>Deny</option><option disabled value=2>Allow</option>\
              <option value=1>Allow once</option></select>",
                "d=1",
            ),
            ("<select name=days><option value=1>One day<option value=30 selected>A month</select>", "days=30"),
            ("<select name=days><option value=1>One day<option value=30>A month</select>", "days=1"),
            ("<input type=radio name=d value=false><input type=radio name=d value=true>", "d=true"),
        ] {
            let page = Page::of(&format!("<form method=post>{form}</form>"));
            assert_eq!(page.forms[0].approve().body, body, "{form}");
        }
        let page = Page::of(
            "<form method=post><label><input type=radio name=d value=1> I &amp; you\n agree</label><button>OK",
        );
        assert_eq!(page.forms[0].approve().did, "\"I & you agree\" was chosen and \"OK\" was pressed");
    }
}
