//! What is asked of a provider, and what it tells.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

pub struct Asked {
    pub path: String,
    pub values: HashMap<String, String>,
    pub headers: HashMap<String, String>,
}

#[derive(Default)]
pub struct Told {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: String,
}

pub fn json(body: String) -> Told {
    Told { status: 200, headers: vec!["Content-Type: application/json".to_owned()], body }
}

pub fn jwt(body: &str) -> Told {
    Told {
        status: 200,
        headers: vec!["Content-Type: application/jwt; charset=utf-8".to_owned()],
        body: body.to_owned(),
    }
}

pub fn page(body: String) -> Told {
    Told { status: 200, headers: vec!["Content-Type: text/html".to_owned()], body }
}

pub fn problem(status: u16, code: &str) -> Told {
    Told { status, body: format!(r#"{{"type":"x","code":"{code}"}}"#), ..Told::default() }
}

pub fn error(status: u16, code: &str) -> Told {
    Told { status, body: format!(r#"{{"error":"{code}"}}"#), ..Told::default() }
}

impl Told {
    pub fn with_status(self, status: u16) -> Told {
        Told { status, ..self }
    }
}

pub fn read<S: Read>(reader: &mut BufReader<S>) -> std::io::Result<Option<Asked>> {
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
    let values = match headers.get("content-type").is_some_and(|kind| kind == "application/json") {
        true => serde_json::from_slice(&body).unwrap(),
        false => {
            let pairs = form_urlencoded::parse(query.as_bytes()).chain(form_urlencoded::parse(&body));
            pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect()
        }
    };
    Ok(Some(Asked { path: path.to_owned(), values, headers }))
}
