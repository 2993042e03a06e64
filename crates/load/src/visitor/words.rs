//! The words of buttons and choices that tell yes from no: in Chinese, Czech, Danish, Dutch, English, Finnish, French,
//! German, Italian, Japanese, Norwegian, Polish, Portuguese, Russian, Spanish, Swedish and Turkish.

/// Parts of phrases that put an offer off, such as that of a passkey, and go on without it. They are checked before
/// those that say no, which some of them contain.
const LATER: &[&str] = &["skip", "not now", " later"];

/// Parts of phrases that say no, in lower case. They are checked before those that say yes, which many of them contain.
const NO: &[&str] = &[
    // English.
    "disagree",
    "deny",
    "cancel",
    "reject",
    "decline",
    "refuse",
    "disallow",
    "don't",
    "not ",
    "no thanks",
    "sign out",
    // What else is on a page: not a no, but no answer to its question either.
    "log out",
    "logout",
    " search",
    "cookie",
    // German, Italian, French.
    "abbrechen",
    "ablehnen",
    " nicht ",
    "annulla",
    "rifiuta",
    "annuler",
    "ne pas",
    "rejeter",
    // Spanish, Portuguese; a word of both is listed once, and "cancel" is listed above.
    "rechazar",
    "denegar",
    "no permitir",
    "no autorizar",
    "no acept",
    "recusar",
    "negar",
    "rejeitar",
    " não ",
    // Dutch.
    "weiger",
    "afwijzen",
    " niet ",
    // Polish, Czech.
    "odmów",
    "odmawiam",
    "odrzu",
    "anuluj",
    " nie ",
    "odmítn",
    "zamítn",
    "zrušit",
    "nepovol",
    "nesouhlas",
    // Swedish, Danish, Norwegian.
    "neka",
    "avvisa",
    "avböj",
    "avbryt",
    "tillåt inte",
    "afvis",
    "annuller",
    "nægt",
    "avslå",
    "avvis",
    "nekt",
    "ikke",
    // Finnish.
    "kiellä",
    "hylkää",
    "peruuta",
    " älä ",
    "en hyväksy",
    // Turkish; a capital İ becomes two characters in lower case.
    "reddet",
    "ptal",
    "zin verme",
    "vazgeç",
    // Russian.
    "отклонить",
    "отказ",
    "запретить",
    "отмен",
    " не ",
    // Japanese, Chinese.
    "拒否",
    "キャンセル",
    "しない",
    "しません",
    "拒绝",
    "拒絕",
    "取消",
    "不同意",
    "不允许",
    "不允許",
    "不授",
];

/// Parts of phrases that say yes.
const YES: &[&str] = &[
    // English.
    "allow",
    "accept",
    "approve",
    "agree",
    "grant",
    "authori",
    "yes",
    "confirm",
    "consent",
    // German, Italian, French.
    "erlauben",
    "zustimmen",
    "zulassen",
    "accetta",
    "autorizz",
    "autoris",
    "approuver",
    // Spanish, Portuguese.
    "permit",
    "acept",
    "autoriza",
    "aprobar",
    "aprovar",
    "conceder",
    "aceit",
    "continua",
    // Dutch.
    "toestaan",
    "akkoord",
    "goedkeur",
    "doorgaan",
    // Polish, Czech.
    "zezw",
    "pozwól",
    "pozwal",
    "akcept",
    "zgadzam",
    "zatwierd",
    "kontynuuj",
    "povol",
    "přijm",
    "souhlas",
    "pokračovat",
    // Swedish, Danish, Norwegian.
    "tillåt",
    "godkänn",
    "fortsätt",
    "samtyck",
    "tillad",
    "godkend",
    "fortsæt",
    "samtyk",
    "tillat",
    "godta",
    "godkjenn",
    "aksepter",
    "fortsett",
    // Finnish.
    "salli",
    "hyväksy",
    "jatka",
    "myönnä",
    // Turkish.
    "zin ver",
    "kabul",
    "onayl",
    "devam",
    // Russian.
    "разреш",
    "принять",
    "принимаю",
    "соглас",
    "подтвер",
    "продолж",
    // Japanese, Chinese.
    "許可",
    "同意",
    "承認",
    "続",
    "允许",
    "允許",
];

/// Words that say no only if they stand alone.
const ONLY_NO: &[&str] =
    &["no", "nein", "non", "não", "nee", "nie", "ne", "nej", "nei", "ei", "nega", "hayır", "нет", "いいえ", "否", "不"];

/// Words that say yes only if they stand alone.
const ONLY_YES: &[&str] =
    &["ja", "sì", "sí", "si", "sim", "oui", "tak", "ano", "kyllä", "evet", "да", "はい", "是", "接受", "授权", "授權"];

/// What agrees to everything: often to the cookies of a site, and not to what a client asks for.
const ALL: &str = "accept all";

/// Goes on with whatever the page is about, which may be an offer.
const GOES_ON: &str = "continue";

/// Rates how much the words and the value that is sent look like a yes: 4 a yes, 3 an offer put off, 2 a way on, 1
/// unclear, 0 a no.
pub(super) fn consent(said: &str, label: &str, sent: &str) -> u8 {
    // A space before the first word, as before every other word.
    let said = format!(" {}", said.to_lowercase());
    let (label, sent) = (bare(label), bare(sent));
    let is = |words: &[&str], text: &str| words.contains(&text);
    match () {
        () if LATER.iter().any(|word| said.contains(word)) => 3,
        () if NO.iter().any(|word| said.contains(word)) || is(ONLY_NO, &label) => 0,
        () if said.contains(ALL) => 1,
        () if YES.iter().any(|word| said.contains(word)) || is(ONLY_YES, &label) => 4,
        () if said.contains(GOES_ON) => 2,
        () if is(&["no", "n", "false"], &sent) => 0,
        () if is(&["y", "true"], &sent) => 4,
        () => 1,
    }
}

/// Strips everything around a word that is not a letter or a digit.
fn bare(text: &str) -> String {
    text.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::consent;

    /// Red where yes is checked first, or a language is missing.
    #[test]
    fn yes_is_told_from_no_in_every_language_that_is_known() {
        for (language, no, yes) in [
            ("cs", "Odmítnout|Zrušit|Nesouhlasím|Nepovolit|Ne", "Povolit|Souhlasím|Přijmout|Pokračovat|Ano"),
            ("da", "Afvis|Annuller|Tillad ikke|Nej", "Tillad|Godkend|Accepter|Fortsæt|Ja"),
            ("de", "Ablehnen|Abbrechen|Nicht erlauben|Nein", "Erlauben|Zustimmen|Zulassen|Ja"),
            ("en", "Deny|Cancel|Don't allow|Do not allow|No", "Allow|Accept|Authorize|Continue|Yes"),
            ("es", "Rechazar|Denegar|Cancelar|No permitir|No", "Permitir|Aceptar|Autorizar|Continuar|Sí"),
            ("fi", "Kiellä|Hylkää|Peruuta|Älä salli|Ei", "Salli|Hyväksy|Jatka|Kyllä"),
            ("fr", "Refuser|Annuler|Ne pas autoriser|Non", "Autoriser|Accepter|Continuer|Oui"),
            ("it", "Rifiuta|Annulla|No", "Consenti|Accetta|Autorizza|Continua|Sì"),
            ("ja", "拒否する|キャンセル|許可しない|同意しません|いいえ", "許可する|同意する|承認|続行|はい"),
            ("nb", "Avslå|Avvis|Avbryt|Ikke tillat|Nei", "Tillat|Godta|Godkjenn|Fortsett|Ja"),
            ("nl", "Weigeren|Afwijzen|Annuleren|Niet toestaan|Nee", "Toestaan|Accepteren|Akkoord|Doorgaan|Ja"),
            ("pl", "Odmów|Odrzuć|Anuluj|Nie zezwalaj|Nie", "Zezwól|Akceptuj|Zgadzam się|Kontynuuj|Tak"),
            ("pt", "Recusar|Negar|Cancelar|Não permitir|Não", "Permitir|Aceitar|Autorizar|Continuar|Sim"),
            ("ru", "Отклонить|Отказать|Отмена|Не разрешать|Нет", "Разрешить|Принять|Согласен|Продолжить|Да"),
            ("sv", "Neka|Avvisa|Avbryt|Tillåt inte|Nej", "Tillåt|Godkänn|Acceptera|Fortsätt|Ja"),
            ("tr", "Reddet|İptal|İptal et|İzin verme|Hayır", "İzin ver|Kabul et|Onayla|Devam|Evet"),
            ("zh", "拒绝|取消|不同意|不允许|拒絕|不授权|否", "允许|同意|授权|接受|是|允許"),
        ] {
            for label in no.split('|') {
                assert_eq!(consent(label, label, "1"), 0, "{language} {label}");
            }
            for label in yes.split('|') {
                assert!(consent(label, label, "0") >= 2, "{language} {label}");
            }
        }
        assert_eq!(consent("OK", "OK", "1"), 1);
    }

    /// Red without `LATER`, and where a way on is as good as a yes: the offer of a passkey was taken.
    #[test]
    fn an_offer_is_put_off_rather_than_taken_and_a_question_is_answered() {
        let of = |label: &str| consent(label, label, "1");
        for (worse, better) in [
            ("Enable biometrics", "Skip for now"),
            ("Continue", "Not now"),
            ("Create a passkey", "Remind me later"),
            ("Not now", "Allow"),
            ("Cancel", "Not now"),
            ("Search", "OK"),
            ("Log out", "Submit"),
            ("Logout", "Submit"),
            ("Accept all cookies", "Submit"),
            ("Accept all", "Allow"),
            ("Reset", "Submit Consent"),
            ("Back", "Confirm"),
            ("I do not consent", "I consent"),
        ] {
            assert!(of(worse) < of(better), "{worse} {better}");
        }
        assert_eq!(of("Allow research"), 4);
    }
}
