//! A provider that is just real enough: it remembers nothing it need not, and misbehaves on request.

use crate::asked::{Asked, Told, error, json, jwt, page, problem, read};
use crate::strange::{URI, Way};
use crate::trust::Lie;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What the provider does differently from a good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Nothing.
    #[default]
    Good,
    /// Sends every body in chunks of seven bytes.
    Chunked,
    /// Closes the connection after each response.
    Closing,
    /// Asks for consent after the password, on a page of its own.
    Consent,
    /// Asks for the name on a page, where there is a form for newcomers, and for the password on the next.
    Apart,
    /// The same, with status 401 for the first page, which comes again for `nobody`.
    ApartUnauthorized,
    /// Answers every third sign-in with 503 and Retry-After.
    Busy,
    /// Answers every third refresh with 400, from the second on.
    Flaky,
    /// Says of every third token that it is not active.
    Fading,
    /// Names another issuer in authorization responses.
    Mixup,
    /// Sends the state back changed.
    Forgetful,
    /// Names a token endpoint on another machine.
    Elsewhere,
    /// Takes 20 ms for the key set.
    Slow,
    /// Never answers for the key set, from the third time on.
    Stuck,
    /// Does not answer for the key set the first two times.
    Digesting,
    /// Answers every sign-in with 503 and Retry-After.
    Closed,
    /// Has an account API.
    Accounts,
    /// The same, behind a proxy that does not reach it the first two times.
    Waking,
    /// Lets in only who has access: the others are sent back with an error.
    Members,
    /// Gives access tokens that live for no time at all, and takes 100 ms for a refresh.
    Brief,
    /// The same, and renews none.
    Withdrawn,
    /// Gives tokens to clients without a secret too.
    Public,
    /// Introspects nothing.
    Mute,
    /// Introspects nothing, and tells nothing of users either.
    Silent,
    /// Signs what it tells of users.
    Signing,
    /// Introspects for `api` with `api-secret`, and for nobody else.
    Apis,
    /// Gives no refresh tokens.
    Once,
    /// Sends whoever signs in to another machine.
    Astray,
    /// Has pages of its own kind.
    Strange(Way),
    /// Says what is not so about itself, or about whom its tokens are for.
    Lying(Lie),
    /// Hangs up in place of the key set, every second time.
    HangingUp,
}

/// A provider on a port of its own; it ends with the process.
pub struct Provider {
    pub url: String,
    state: Arc<State>,
}

struct State {
    manner: Manner,
    url: String,
    count: AtomicU64,
    connections: AtomicU64,
    /// Requests by path.
    seen: Mutex<BTreeMap<String, u64>>,
    logins: Mutex<BTreeMap<String, u64>>,
    /// What was said last, by path.
    said: Mutex<HashMap<String, HashMap<String, String>>>,
    /// Codes with their challenges and nonces.
    codes: Mutex<HashMap<String, (String, String)>>,
    refresh_tokens: Mutex<Vec<String>>,
}

impl Provider {
    pub fn start(manner: Manner) -> Provider {
        Provider::on(manner, None)
    }

    /// One that speaks TLS, with a certificate of its own; the certificate, as PEM.
    pub fn secure(manner: Manner) -> (Provider, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(crypto).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        (Provider::on(manner, Some(Arc::new(config))), made.cert.pem())
    }

    fn on(manner: Manner, tls: Option<Arc<ServerConfig>>) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = match tls {
            Some(_) => format!("https://localhost:{}", address.port()),
            None => format!("http://{address}"),
        };
        let state = Arc::new(State {
            manner,
            url: url.clone(),
            count: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            seen: Mutex::default(),
            logins: Mutex::default(),
            said: Mutex::default(),
            codes: Mutex::default(),
            refresh_tokens: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, tls) = (Arc::clone(&shared), tls.clone());
                state.connections.fetch_add(1, Ordering::Relaxed);
                stream.set_nodelay(true).unwrap();
                // A client that goes away in the middle ends its own thread only.
                thread::spawn(move || match tls {
                    None => state.serve(stream).ok(),
                    Some(config) => state.serve(StreamOwned::new(ServerConnection::new(config).unwrap(), stream)).ok(),
                });
            }
        });
        Provider { url, state }
    }

    pub fn seen(&self, path: &str) -> u64 {
        self.state.seen(path)
    }

    pub fn logins(&self) -> BTreeMap<String, u64> {
        self.state.logins.lock().unwrap().clone()
    }

    /// What was said last at `path` under a name.
    pub fn said(&self, path: &str, name: &str) -> Option<String> {
        self.state.said.lock().unwrap().get(path)?.get(name).cloned()
    }

    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }
}

/// The sign-in page of a flow.
fn sign_in_form(flow: &str) -> String {
    format!(
        r#"<title>Sign in</title><form action="/search"><input name="q"></form>
        <form method="post" action="login?x=1&amp;y=2"><input type="hidden" name="flow" value="{}">
        <input name="login" type="email"><input name="password" type="password"><button>Sign in</button></form>"#,
        flow.replace('&', "&amp;")
    )
}

impl State {
    fn serve<S: Read + Write>(&self, stream: S) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(asked) = read(&mut reader)? {
            *self.seen.lock().unwrap().entry(asked.path.clone()).or_default() += 1;
            self.said.lock().unwrap().insert(asked.path.clone(), asked.values.clone());
            let told = self.answer(&asked);
            if self.manner == Manner::HangingUp && asked.path == "/jwks" && self.next() % 2 == 1 {
                return Ok(());
            }
            let mut text = format!("HTTP/1.1 {} X\r\n", told.status);
            told.headers.iter().for_each(|header| text += &format!("{header}\r\n"));
            if self.manner == Manner::Closing {
                text += "Connection: close\r\n";
            }
            if self.manner == Manner::Chunked {
                text += "Transfer-Encoding: chunked\r\n\r\n";
                for chunk in told.body.as_bytes().chunks(7) {
                    text += &format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk));
                }
                text += "0\r\n\r\n";
            } else {
                text += &format!("Content-Length: {}\r\n\r\n{}", told.body.len(), told.body);
            }
            reader.get_mut().write_all(text.as_bytes())?;
            if self.manner == Manner::Closing {
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer(&self, asked: &Asked) -> Told {
        if self.manner == Manner::Slow && matches!(asked.path.as_str(), "/jwks" | "/token") {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        match asked.path.as_str() {
            "/.well-known/openid-configuration" => json(self.metadata()),
            "/authorize" => self.authorize(asked),
            "/login" => self.login(asked),
            "/name" if asked.values["login"] == "nobody" => self.authorize(asked),
            "/name" => page(format!(
                r#"<title>Password</title><form method="post" action="login?x=1&amp;y=2">
                <input type="hidden" name="flow" value="{}"><input type="hidden" name="login" value="{}">
                <input name="password" type="password"><button>Sign in</button></form>"#,
                asked.values["flow"].replace('&', "&amp;"),
                asked.values["login"]
            )),
            "/consent" => self.consent(asked),
            "/form" => page(sign_in_form(&asked.values["flow"])),
            "/way" => {
                let (value, lost) = (|name: &str| asked.values[name].clone(), asked.values.contains_key("lost"));
                assert!(!lost && asked.values.get("d").is_none_or(|pressed| pressed == "1"), "{:?}", asked.values);
                self.arrived(&value("q"), value("step").parse().unwrap())
            }
            "/token" => self.token(asked),
            "/introspect" if !self.may_introspect(asked) => error(401, "invalid_client"),
            "/introspect" => {
                let fades = self.manner == Manner::Fading && self.seen("/introspect").is_multiple_of(3);
                json(format!(r#"{{"active":{}}}"#, asked.values["token"].starts_with("at-") && !fades))
            }
            "/userinfo" if asked.headers.get("authorization").is_some_and(|value| value.starts_with("Bearer at-")) => {
                match self.manner {
                    // {"sub":"1"}
                    Manner::Signing => jwt("e30.eyJzdWIiOiIxIn0.c2ln"),
                    _ => json(r#"{"sub":"1"}"#.to_owned()),
                }
            }
            "/userinfo" => error(401, "invalid_token"),
            "/jwks" => self.keys(),
            "/device" if !client_is_right(asked) => error(401, "invalid_client"),
            "/device" if asked.values["code_challenge_method"] != "S256" => error(400, "invalid_request"),
            "/device" => {
                let code = format!("dc-{}", self.next());
                self.codes
                    .lock()
                    .unwrap()
                    .insert(code.clone(), (asked.values["code_challenge"].clone(), String::new()));
                json(format!(r#"{{"device_code":"{code}","user_code":"X"}}"#))
            }
            path if self.manner == Manner::Waking && path.starts_with("/api/v1/") && self.seen(path) <= 2 => {
                page("<title>Bad Gateway</title>".to_owned()).with_status(502)
            }
            path if matches!(self.manner, Manner::Accounts | Manner::Waking) && path.starts_with("/api/v1/") => {
                self.account(asked)
            }
            _ => page("<title>Nothing here</title>".to_owned()).with_status(404),
        }
    }

    fn seen(&self, path: &str) -> u64 {
        self.seen.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    fn may_introspect(&self, asked: &Asked) -> bool {
        let api = "Basic YXBpOmFwaS1zZWNyZXQ=";
        if self.manner == Manner::Apis { asked.headers["authorization"] == api } else { client_is_right(asked) }
    }

    fn metadata(&self) -> String {
        let url = &self.url;
        let issuer = if self.manner == Manner::Lying(Lie::Issuer) { "http://127.0.0.1:1" } else { url };
        let token = if self.manner == Manner::Elsewhere { "http://example.com" } else { url };
        let introspects = match self.manner {
            Manner::Mute | Manner::Silent => String::new(),
            _ => format!(r#""introspection_endpoint":"{url}/introspect","#),
        };
        let tells = match self.manner {
            Manner::Silent => String::new(),
            _ => format!(r#""userinfo_endpoint":"{url}/userinfo","#),
        };
        format!(
            r#"{{"issuer":"{issuer}","authorization_endpoint":"{url}/authorize","token_endpoint":"{token}/token",
            "jwks_uri":"{url}/jwks",{introspects}{tells}
            "device_authorization_endpoint":"{url}/device","authorization_response_iss_parameter_supported":true}}"#
        )
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    fn keys(&self) -> Told {
        let is_deaf = match self.manner {
            Manner::Stuck => self.next() >= 2,
            Manner::Digesting => self.next() < 2,
            _ => false,
        };
        if is_deaf {
            thread::sleep(std::time::Duration::from_secs(3600));
        }
        json(r#"{"keys":[{"kty":"EC"}]}"#.to_owned())
    }

    fn account(&self, asked: &Asked) -> Told {
        let value = |name: &str| asked.values.get(name).map(String::as_str);
        let bearer = asked.headers.get("authorization").map(String::as_str);
        match asked.path.as_str() {
            "/api/v1/me" if bearer == Some("Bearer account") => json(r#"{"sub":"1"}"#.to_owned()),
            "/api/v1/me" => problem(401, "token-refused"),
            _ if bearer != Some("Basic YXBwOnNlY3JldA==") || value("client_id") != Some("app") => {
                problem(401, "client-refused")
            }
            "/api/v1/signin" if value("password") != Some("right") => problem(422, "wrong-credentials"),
            "/api/v1/signup"
                if self.logins.lock().unwrap().insert(value("username").unwrap().to_owned(), 1).is_some() =>
            {
                problem(422, "invalid-fields")
            }
            "/api/v1/signup" => json(r#"{"next":"done","access_token":"account"}"#.to_owned()).with_status(201),
            _ => json(r#"{"next":"done","access_token":"account","refresh_token":"r","expires_in":900}"#.to_owned()),
        }
    }

    /// The parameters travel through the pages in one hidden field, as a browser would carry them.
    fn authorize(&self, asked: &Asked) -> Told {
        if asked.headers.get("cookie").is_some_and(|cookies| cookies.contains("sid=1")) {
            return self.arrive(&asked.values);
        }
        let flow = form_urlencoded::Serializer::new(String::new()).extend_pairs(&asked.values).finish();
        let (raw, flow) = (flow.clone(), flow.replace('&', "&amp;"));
        let mut told = match self.manner {
            Manner::Apart | Manner::ApartUnauthorized => page(format!(
                r#"<title>Who comes?</title><form action="/search"><input name="q"></form><form method="post" action="name">
                <input type="hidden" name="flow" value="{flow}"><input name="login" type="email"><button>Next</button></form>
                <form method="post" action="register"><input name="u"><input name="p" type="password"><button>Join</button></form>"#
            )),
            Manner::Astray => {
                Told { status: 302, headers: vec!["Location: http://example.com/".to_owned()], ..Told::default() }
            }
            Manner::Strange(way) => match way.sign_in(&sign_in_form(&raw), &raw, &self.url) {
                Some((status, headers, body)) => Told { status, headers, body },
                None => page(sign_in_form(&raw)),
            },
            _ => page(sign_in_form(&raw)),
        };
        if self.manner == Manner::ApartUnauthorized {
            told.status = 401;
        }
        told.headers.push("Set-Cookie: flow=7; Path=/; HttpOnly".to_owned());
        told
    }

    fn login(&self, asked: &Asked) -> Told {
        assert_eq!((asked.values["x"].as_str(), asked.values["y"].as_str()), ("1", "2"));
        let cookies = if self.manner == Manner::Strange(Way::OnPaths) { "way=1; flow=7" } else { "flow=7" };
        assert_eq!(asked.headers["cookie"], cookies, "a new visitor has the cookies of its own flow only");
        assert_eq!(asked.headers["origin"], self.url);
        if self.manner == Manner::Closed || self.manner == Manner::Busy && self.next() % 3 == 2 {
            return Told { status: 503, headers: vec!["Retry-After: 0".to_owned()], body: String::new() };
        }
        if asked.values["password"] != "right" {
            return self.authorize(asked);
        }
        *self.logins.lock().unwrap().entry(asked.values["login"].clone()).or_default() += 1;
        if self.manner == Manner::Members {
            let flow: HashMap<_, _> = form_urlencoded::parse(asked.values["flow"].as_bytes()).into_owned().collect();
            let location = format!("Location: {}?error=access_denied&state={}", flow["redirect_uri"], flow["state"]);
            return Told { status: 302, headers: vec![format!("{location}&iss={}", self.url)], ..Told::default() };
        }
        let flow = &asked.values["flow"];
        let mut told = match self.manner {
            Manner::Consent => page(format!(
                r#"<form method=post action=/consent><input type=hidden name=flow value="{}">
                <button name=say value=no>Cancel</button><button name=say value=yes>Allow</button></form>"#,
                flow.replace('&', "&amp;")
            )),
            _ => Told { status: 303, headers: vec![format!("Location: /authorize?{flow}")], ..Told::default() },
        };
        told.headers.extend(["Set-Cookie: sid=1; Path=/".to_owned(), "Set-Cookie: flow=; Max-Age=0".to_owned()]);
        told
    }

    fn consent(&self, asked: &Asked) -> Told {
        assert_eq!(asked.headers["cookie"], "sid=1", "the cookie of the flow was removed");
        assert_eq!(asked.values["say"], "yes");
        self.arrive(&form_urlencoded::parse(asked.values["flow"].as_bytes()).into_owned().collect())
    }

    fn arrive(&self, flow: &HashMap<String, String>) -> Told {
        assert_eq!((flow["response_type"].as_str(), flow["code_challenge_method"].as_str()), ("code", "S256"));
        let code = format!("code-{}", self.next());
        let remembered = (flow["code_challenge"].clone(), flow["nonce"].clone());
        self.codes.lock().unwrap().insert(code.clone(), remembered);
        let state = if self.manner == Manner::Forgetful { "x" } else { &flow["state"] };
        let issuer = if self.manner == Manner::Mixup { "http://127.0.0.1:1" } else { &self.url };
        let query = format!("code={code}&state={state}&iss={issuer}");
        if matches!(self.manner, Manner::Strange(_)) {
            return self.arrived(&query, 0);
        }
        let location = format!("Location: {}?{query}", flow["redirect_uri"]);
        Told { status: 302, headers: vec![location], ..Told::default() }
    }

    fn arrived(&self, query: &str, step: u32) -> Told {
        let strange = if let Manner::Strange(way) = self.manner { way.arrive(query, step) } else { None };
        let straight = || (302, vec![format!("Location: {URI}?{query}")], String::new());
        let (status, headers, body) = strange.unwrap_or_else(straight);
        Told { status, headers, body }
    }

    fn token(&self, asked: &Asked) -> Told {
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        use sha2::{Digest, Sha256};
        if !client_is_right(asked) && self.manner != Manner::Public {
            return error(401, "invalid_client");
        }
        let remembered = |code: &str| {
            let remembered = self.codes.lock().unwrap().remove(&asked.values[code]);
            let verified = URL_SAFE_NO_PAD.encode(Sha256::digest(asked.values["code_verifier"].as_bytes()));
            remembered.filter(|(challenge, _)| *challenge == verified).map(|(_, nonce)| nonce)
        };
        match asked.values["grant_type"].as_str() {
            "authorization_code" => {
                let Some(nonce) = remembered("code") else { return error(400, "invalid_grant") };
                let lie = if let Manner::Lying(lie) = self.manner { Some(lie) } else { None };
                let mut told = self.tokens();
                told.body = told.body.replacen('{', &Lie::member(lie, &self.url, &nonce), 1);
                told
            }
            "refresh_token" => {
                if self.manner == Manner::Withdrawn {
                    return error(400, "invalid_grant");
                }
                if self.manner == Manner::Brief {
                    thread::sleep(std::time::Duration::from_millis(100));
                }
                if self.manner == Manner::Flaky && self.seen.lock().unwrap()["/token"].is_multiple_of(3) {
                    return error(400, "invalid_grant");
                }
                let mut live = self.refresh_tokens.lock().unwrap();
                let Some(at) = live.iter().position(|token| *token == asked.values["refresh_token"]) else {
                    return error(400, "invalid_grant");
                };
                live.swap_remove(at);
                drop(live);
                self.tokens()
            }
            grant if grant.ends_with(":device_code") => {
                error(400, remembered("device_code").map_or("invalid_grant", |_| "authorization_pending"))
            }
            _ => self.tokens(),
        }
    }

    fn tokens(&self) -> Told {
        let refresh = format!("rt-{}", self.next());
        self.refresh_tokens.lock().unwrap().push(refresh.clone());
        let life = if matches!(self.manner, Manner::Brief | Manner::Withdrawn) { 0 } else { 900 };
        if self.manner == Manner::Once {
            return json(format!(r#"{{"access_token":"at-{refresh}","token_type":"Bearer","expires_in":{life}}}"#));
        }
        json(format!(
            r#"{{"access_token":"at-{refresh}","token_type":"Bearer","expires_in":{life},"refresh_token":"{refresh}"}}"#
        ))
    }
}

/// `app` with `secret`, either way.
fn client_is_right(asked: &Asked) -> bool {
    let basic = asked.headers.get("authorization").is_some_and(|value| value == "Basic YXBwOnNlY3JldA==");
    let value = |name: &str| asked.values.get(name).map(String::as_str);
    basic != (value("client_id") == Some("app") && value("client_secret") == Some("secret"))
}
