//! What a page does not show, judged by the attributes of its elements; style sheets are not read.

use super::html::Attributes;

/// Tracks whether the current position is inside of an element that is not shown.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// The name of the outermost such element, and how many of that name are open since.
    outer: Option<(String, usize)>,
}

impl Unseen {
    /// Processes a start tag.
    pub(super) fn open(&mut self, name: &str, tag: &Attributes) {
        // A document may leave out the end tags of some elements.
        if self.outer.as_ref().is_some_and(|(outer, _)| is_ended_by(outer, name)) {
            self.outer = None;
        }
        match &mut self.outer {
            Some((outer, depth)) => *depth += usize::from(outer == name),
            None if is_unseen(name, tag) => self.outer = Some((name.to_owned(), 1)),
            None => {}
        }
    }

    /// Processes an end tag.
    pub(super) fn close(&mut self, name: &str) {
        let Some((outer, depth)) = &mut self.outer else { return };
        *depth -= usize::from(outer == name);
        if *depth == 0 || is_ended_with(outer, name) {
            self.outer = None;
        }
    }

    /// Returns true where nothing is shown.
    pub(super) fn is_here(&self) -> bool {
        self.outer.is_some()
    }
}

/// Elements that end a paragraph (WHATWG HTML §13.1.2.4): the usual ones.
const BLOCKS: [&str; 20] = [
    "article", "div", "dl", "fieldset", "footer", "form", "h1", "h2", "h3", "h4", "header", "hr", "main", "nav", "ol",
    "p", "pre", "section", "table", "ul",
];

/// Whether a start tag ends an element without an end tag.
fn is_ended_by(outer: &str, name: &str) -> bool {
    match outer {
        "p" => BLOCKS.contains(&name),
        "li" => name == "li",
        "dt" | "dd" => ["dt", "dd"].contains(&name),
        "tr" => ["tr", "tbody", "tfoot"].contains(&name),
        "td" | "th" => ["td", "th", "tr", "tbody", "tfoot"].contains(&name),
        _ => false,
    }
}

/// Whether the end tag of what is around an element ends that element, too.
fn is_ended_with(outer: &str, name: &str) -> bool {
    match outer {
        "p" => name != "p" && (BLOCKS.contains(&name) || ["li", "td", "body"].contains(&name)),
        "li" => ["ul", "ol"].contains(&name),
        "dt" | "dd" => name == "dl",
        "tr" | "td" | "th" => name == "table",
        _ => false,
    }
}

fn is_unseen(name: &str, tag: &Attributes) -> bool {
    // Elements without contents, and the entries of a list, which often have no end tag.
    const SINGLE: [&str; 9] = ["area", "br", "hr", "img", "input", "link", "meta", "option", "wbr"];
    let style = tag.value("style").unwrap_or_default();
    let style: String = style.chars().filter(|letter| !letter.is_whitespace()).collect();
    !SINGLE.contains(&name) && (tag.has("hidden") || style.to_ascii_lowercase().contains("display:none"))
}

#[cfg(test)]
mod tests {
    use crate::visitor::page::Page;

    /// The login form, with something in it.
    fn with(more: &str) -> String {
        let fields = "<input name=u><input type=password name=p><button>Sign in</button>";
        format!("<form method=post action=/in>{more}{fields}</form>")
    }

    /// Red without `unseen`: a trap for bots was filled in, and the name did not go where it belongs.
    #[test]
    fn what_is_in_a_hidden_element_is_sent_as_it_stands() {
        for trap in [
            "<div style='display: none'><input name=email autocomplete=email></div>",
            "<div hidden><div></div><label>Leave blank <input name=email></label></div>",
            "<p hidden><input name=email></p>",
            "<table><tr style='display:none'><td><input name=email></td></tr></table>",
        ] {
            let page = Page::of(&with(trap));
            assert_eq!(page.sign_in().unwrap().sign_in("ann", "pw").body, "email=&u=ann&p=pw", "{trap}");
        }
        let traps = "<div hidden><input type=checkbox name=bot><input type=checkbox name=b checked value=1>\
                     <input type=radio name=r value=yes><select name=s><option>no<option>yes</select>\
                     <button name=d value=trap>Allow</button></div><input type=checkbox name=c value=1>";
        let page = Page::of(&format!("<form method=post>{traps}<button name=d value=1>Allow</button></form>"));
        assert_eq!(page.forms[0].approve().body, "b=1&s=no&c=1&d=1");
    }

    /// Red without `shows_password` in `sign_in` and in `fits`: a tab that a script would open was answered.
    #[test]
    fn a_form_that_is_shown_comes_before_one_that_is_not() {
        let tab = "<div style='display:none'><form method=post action=/new><input name=email>\
                   <input type=password name=pw><button>Go</button></form></div>";
        let name = "<form method=post action=/name><input name=login><button>Next</button></form>";
        for page in [format!("{tab}{}", with("")), format!("{}{tab}", with(""))] {
            assert_eq!(Page::of(&page).sign_in().unwrap().action(), "/in", "{page}");
        }
        for page in [format!("{tab}{name}"), format!("{name}{tab}")].map(|page| Page::of(&page)) {
            assert!(page.sign_in().is_none());
            assert_eq!(page.introduction().unwrap().action(), "/name");
        }
    }

    /// Where a script shows the page, all of it is hidden before.
    #[test]
    fn a_page_that_shows_nothing_is_read_as_if_it_did() {
        for page in [format!("<body style='display:none'>{}", with("")), format!("<div hidden>{}</div>", with(""))] {
            assert_eq!(Page::of(&page).sign_in().unwrap().sign_in("ann", "pw").body, "u=ann&p=pw");
        }
        let consent = "<div hidden><form method=post><input type=checkbox name=c><button name=d value=1>Yes</button>";
        assert_eq!(Page::of(consent).forms[0].approve().body, "c=on&d=1");
    }

    /// Red without `is_ended_by` and `is_ended_with`: the rest of the page would be hidden, too.
    #[test]
    fn an_element_without_an_end_tag_ends_where_it_does_in_a_browser() {
        for before in [
            "<p hidden>Wrong password.",
            "<div><p hidden>Wrong password.</div>",
            "<ul><li hidden>a<li>b</ul>",
            "<ul><li hidden>a</ul>",
            "<table><tr hidden><td>a</table>",
            "<select><option hidden>Choose<option>b</select>",
        ] {
            let page = Page::of(&format!("{before}{}<p>Welcome", with("<div hidden><input name=email></div>")));
            assert_eq!(page.sign_in().unwrap().sign_in("ann", "pw").body, "email=&u=ann&p=pw", "{before}");
            assert!(page.text.ends_with("Welcome") && !page.text.contains("Wrong"), "{before}: {}", page.text);
        }
    }
}
