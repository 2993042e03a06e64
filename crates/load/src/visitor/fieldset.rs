//! Groups of fields, which may be disabled as a whole.

use super::html::Attributes;

/// The groups around the current position, outermost first.
#[derive(Debug, Default)]
pub(super) struct Fieldsets(Vec<Fieldset>);

#[derive(Debug)]
struct Fieldset {
    disabled: bool,
    legend: Legend,
}

/// The state of a group's first `legend`; fields inside it are not disabled with the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Legend {
    ToCome,
    Open,
    Over,
}

impl Fieldsets {
    /// Processes a start tag.
    pub(super) fn open(&mut self, name: &str, tag: &Attributes) {
        if name == "fieldset" {
            self.0.push(Fieldset { disabled: tag.has("disabled"), legend: Legend::ToCome });
        } else if name == "legend" {
            self.turn(Legend::ToCome, Legend::Open);
        }
    }

    /// Processes an end tag.
    pub(super) fn close(&mut self, name: &str) {
        if name == "fieldset" {
            self.0.pop();
        } else if name == "legend" {
            self.turn(Legend::Open, Legend::Over);
        }
    }

    fn turn(&mut self, from: Legend, to: Legend) {
        if let Some(group) = self.0.last_mut().filter(|group| group.legend == from) {
            group.legend = to;
        }
    }

    /// Returns true where fields are disabled, and so are not sent (WHATWG HTML §4.10.19.5).
    pub(super) fn are_disabled(&self) -> bool {
        self.0.iter().any(|group| group.disabled && group.legend != Legend::Open)
    }
}

#[cfg(test)]
mod tests {
    use crate::visitor::page::Page;

    fn sent(within: &str) -> String {
        let page = Page::of(&format!("<form method=post>{within}</form>"));
        page.forms[0].sign_in("ann", "pw").body
    }

    /// Red without `are_disabled`: a browser sends none of these fields.
    #[test]
    fn what_is_switched_off_as_a_group_is_not_sent() {
        let others = "<input name=u><input type=password name=p>";
        let off = "<fieldset disabled><input name=a><textarea name=b>x</textarea><select name=c><option>x</select>\
                   <input type=hidden name=d value=x><button name=e value=x>Sign in</button><fieldset><input name=f></fieldset>\
                   </fieldset>";
        assert_eq!(sent(&format!("{off}{others}<button name=go value=1>Go</button>")), "u=ann&p=pw&go=1");
        assert_eq!(sent(&format!("<fieldset disabled></fieldset>{others}")), "u=ann&p=pw", "it has an end");
        assert_eq!(sent(&format!("<fieldset>{others}</fieldset>")), "u=ann&p=pw");
        assert_eq!(sent(&format!("<input name=x disabled>{others}")), "u=ann&p=pw");
        // All but the first legend of the group.
        let legend = "<fieldset disabled><legend><input name=u></legend><legend><input name=x></legend></fieldset>";
        assert_eq!(sent(&format!("{legend}<input type=password name=p>")), "u=ann&p=pw");
        let page =
            Page::of("<form method=post><fieldset disabled><input name=u><input type=password name=p></fieldset>");
        assert!(page.sign_in().is_none());
    }

    /// Red without `seen` of a field: nobody fills in a field that is not visible, and a browser sends it as it stands.
    #[test]
    fn what_is_hidden_as_a_group_is_sent_as_it_stands() {
        let hidden = "<fieldset hidden><input name=login value=x><input type=password name=new></fieldset>";
        assert_eq!(sent(&format!("{hidden}<input name=u><input type=password name=p>")), "login=x&new=&u=ann&p=pw");
        let beside = "<form method=post action=/in><input name=u><input type=password name=p></form>";
        let page = Page::of(&format!("<form method=post action=/new>{hidden}</form>{beside}"));
        assert_eq!(page.sign_in().unwrap().sign_in("", "").action, "/in");
        // A script would show these fields: there are no others.
        assert_eq!(sent(hidden), "login=ann&new=pw");
    }
}
