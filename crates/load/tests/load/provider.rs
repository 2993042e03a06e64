//! A provider that is just real enough: it remembers nothing it need not, and misbehaves on request.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
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
    /// Answers every third sign-in with 503 and Retry-After.
    Busy,
    /// Answers every third refresh with 400, from the second on.
    Flaky,
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
    /// Codes with their challenges.
    codes: Mutex<HashMap<String, String>>,
    refresh_tokens: Mutex<Vec<String>>,
}

impl Provider {
    pub fn start(manner: Manner) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            manner,
            url: url.clone(),
            count: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            seen: Mutex::default(),
            logins: Mutex::default(),
            codes: Mutex::default(),
            refresh_tokens: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                state.connections.fetch_add(1, Ordering::Relaxed);
                // A client that goes away in the middle ends its own thread only.
                thread::spawn(move || state.serve(stream).ok());
            }
        });
        Provider { url, state }
    }

    pub fn seen(&self, path: &str) -> u64 {
        self.state.seen.lock().unwrap().get(path).copied().unwrap_or_default()
    }

    pub fn logins(&self) -> BTreeMap<String, u64> {
        self.state.logins.lock().unwrap().clone()
    }

    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }
}

struct Asked {
    path: String,
    values: HashMap<String, String>,
    headers: HashMap<String, String>,
}

#[derive(Default)]
struct Told {
    status: u16,
    headers: Vec<String>,
    body: String,
}

fn json(body: String) -> Told {
    Told { status: 200, headers: vec!["Content-Type: application/json".to_owned()], body }
}

fn page(body: String) -> Told {
    Told { status: 200, headers: vec!["Content-Type: text/html".to_owned()], body }
}

fn error(status: u16, code: &str) -> Told {
    Told { status, body: format!(r#"{{"error":"{code}"}}"#), ..Told::default() }
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Asked>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        let fresh = headers.insert(name.to_ascii_lowercase(), value.to_owned()).is_none();
        assert!(fresh, "{name} was sent twice");
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = form_urlencoded::parse(query.as_bytes()).chain(form_urlencoded::parse(&body));
    Ok(Some(Asked {
        path: path.to_owned(),
        values: pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect(),
        headers,
    }))
}

impl State {
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(asked) = read(&mut reader)? {
            *self.seen.lock().unwrap().entry(asked.path.clone()).or_default() += 1;
            let told = self.answer(&asked);
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
            stream.write_all(text.as_bytes())?;
            if self.manner == Manner::Closing {
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer(&self, asked: &Asked) -> Told {
        match asked.path.as_str() {
            "/.well-known/openid-configuration" => json(self.metadata()),
            "/authorize" => self.authorize(asked),
            "/login" => self.login(asked),
            "/consent" => self.consent(asked),
            "/token" => self.token(asked),
            "/introspect" if !client_is_right(asked) => error(401, "invalid_client"),
            "/introspect" => json(format!(r#"{{"active":{}}}"#, asked.values["token"].starts_with("at-"))),
            "/userinfo" if asked.headers.get("authorization").is_some_and(|value| value.starts_with("Bearer at-")) => {
                json(r#"{"sub":"1"}"#.to_owned())
            }
            "/userinfo" => error(401, "invalid_token"),
            "/jwks" => self.keys(),
            _ => page("<title>Nothing here</title>".to_owned()).with_status(404),
        }
    }

    fn metadata(&self) -> String {
        let url = &self.url;
        let token = if self.manner == Manner::Elsewhere { "http://example.com" } else { url };
        format!(
            r#"{{"issuer":"{url}","authorization_endpoint":"{url}/authorize","token_endpoint":"{token}/token",
            "jwks_uri":"{url}/jwks","introspection_endpoint":"{url}/introspect","userinfo_endpoint":"{url}/userinfo",
            "authorization_response_iss_parameter_supported":true}}"#
        )
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    fn keys(&self) -> Told {
        if self.manner == Manner::Slow {
            thread::sleep(std::time::Duration::from_millis(20));
        }
        if self.manner == Manner::Stuck && self.next() >= 2 {
            thread::sleep(std::time::Duration::from_secs(3600));
        }
        json(r#"{"keys":[{"kty":"EC"}]}"#.to_owned())
    }

    /// The parameters travel through the pages in one hidden field, as a browser would carry them.
    fn authorize(&self, asked: &Asked) -> Told {
        if asked.headers.get("cookie").is_some_and(|cookies| cookies.contains("sid=1")) {
            return self.arrive(&asked.values);
        }
        let flow = form_urlencoded::Serializer::new(String::new()).extend_pairs(&asked.values).finish();
        let flow = flow.replace('&', "&amp;");
        let mut told = page(format!(
            r#"<title>Sign in</title><form action="/search"><input name="q"></form>
            <form method="post" action="login?x=1&amp;y=2"><input type="hidden" name="flow" value="{flow}">
            <input name="login" type="email"><input name="password" type="password"><button>Sign in</button></form>"#
        ));
        told.headers.push("Set-Cookie: flow=7; Path=/; HttpOnly".to_owned());
        told
    }

    fn login(&self, asked: &Asked) -> Told {
        assert_eq!((asked.values["x"].as_str(), asked.values["y"].as_str()), ("1", "2"));
        assert_eq!(asked.headers["cookie"], "flow=7", "a new visitor has the cookie of its own flow only");
        assert_eq!(asked.headers["origin"], self.url);
        if self.manner == Manner::Busy && self.next() % 3 == 2 {
            return Told { status: 503, headers: vec!["Retry-After: 0".to_owned()], body: String::new() };
        }
        if asked.values["password"] != "right" {
            return self.authorize(asked);
        }
        *self.logins.lock().unwrap().entry(asked.values["login"].clone()).or_default() += 1;
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
        self.codes.lock().unwrap().insert(code.clone(), flow["code_challenge"].clone());
        let state = if self.manner == Manner::Forgetful { "x" } else { &flow["state"] };
        let issuer = if self.manner == Manner::Mixup { "http://127.0.0.1:1" } else { &self.url };
        let location = format!("Location: {}?code={code}&state={state}&iss={issuer}", flow["redirect_uri"]);
        Told { status: 302, headers: vec![location], ..Told::default() }
    }

    fn token(&self, asked: &Asked) -> Told {
        use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
        use sha2::{Digest, Sha256};
        if !client_is_right(asked) {
            return error(401, "invalid_client");
        }
        match asked.values["grant_type"].as_str() {
            "authorization_code" => {
                let challenge = self.codes.lock().unwrap().remove(&asked.values["code"]);
                let verified = URL_SAFE_NO_PAD.encode(Sha256::digest(asked.values["code_verifier"].as_bytes()));
                if challenge == Some(verified) { self.tokens() } else { error(400, "invalid_grant") }
            }
            "refresh_token" => {
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
            _ => self.tokens(),
        }
    }

    fn tokens(&self) -> Told {
        let refresh = format!("rt-{}", self.next());
        self.refresh_tokens.lock().unwrap().push(refresh.clone());
        json(format!(r#"{{"access_token":"at-{refresh}","token_type":"Bearer","refresh_token":"{refresh}"}}"#))
    }
}

impl Told {
    fn with_status(self, status: u16) -> Told {
        Told { status, ..self }
    }
}

/// `app` with `secret`, either way.
fn client_is_right(asked: &Asked) -> bool {
    let basic = asked.headers.get("authorization").is_some_and(|value| value == "Basic YXBwOnNlY3JldA==");
    let value = |name: &str| asked.values.get(name).map(String::as_str);
    basic != (value("client_id") == Some("app") && value("client_secret") == Some("secret"))
}
