//! Sets up the audit log from the configuration: its keys, its retention, and its receivers.

use crate::boot::BootError;
use crate::config::{Config, SecretFile};
use crate::loops::panic_of;
use crate::private::{self, Unread, aside};
use crate::receivers;
use app::App;
use app::audit::sink::{Credentials, HTTP, Http, SYSLOG, Sink, Syslog};
use app::audit::{Shelf, Stream, Terms};
use rules::audit::{Key, Keys};
use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};
use tokio::task::JoinSet;

/// Passes the configured terms to `app`, and makes the audit key at the first start.
pub async fn open(config: &Config, app: &App) -> Result<(), BootError> {
    // A key that is made beside an already sealed log would only hide that the right key is missing. A log that has
    // only a record of what retention removed was sealed, too, even if that record names no block.
    let head = app.audit_head().await?;
    let begun = head.block > 0 || !head.key.is_empty();
    let audit = &config.audit;
    let most = |lines: Option<usize>| lines.map(|lines| i64::try_from(lines).unwrap_or(i64::MAX));
    app.open_books(Terms {
        keys: Keys { current: current(config, begun).await?, old: old(&audit.old_keys)? },
        retention: audit.retention,
        max_lines: most(audit.max_lines),
        ceiling: most(audit.ceiling),
        reads: audit.reads,
        shelf: Some(Arc::new(MarkFile(config.server.data.join("audit.mark")))),
    });
    Ok(())
}

/// The mark of this node, kept as a file in its data folder.
#[derive(Debug)]
struct MarkFile(PathBuf);

impl Shelf for MarkFile {
    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        match fs::read(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        private::replace(&self.0, bytes)
    }

    fn clear(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns the key that seals the log; `None` if it is missing and another node has it.
async fn current(config: &Config, begun: bool) -> Result<Option<Key>, BootError> {
    if let Some(secret) = config.audit_key() {
        return Ok(Some(Key::new(secret)));
    }
    let file = config.audit_key_file();
    aside(move || {
        let key = if begun { private::read_key(&file) } else { private::key_or_new(&file) };
        match key {
            Ok(secret) => Ok(Some(Key::new(secret))),
            Err(Unread::Missing) if begun => Ok(None),
            Err(why) => Err(BootError::Other(file.wrong("audit.key_file", &why))),
        }
    })
    .await
}

/// Reads the earlier keys, by which what they sealed is proved.
pub fn old(files: &[SecretFile]) -> Result<Vec<Key>, BootError> {
    let wrong = |file: &SecretFile, why: Unread| BootError::Other(file.wrong("audit.old_keys", &why));
    files.iter().map(|file| private::read_key(file).map(Key::new).map_err(|why| wrong(file, why))).collect()
}

/// Returns the receivers that the log is delivered to.
pub fn streams(config: &Config) -> Result<Vec<Stream>, BootError> {
    let mut streams = Vec::new();
    if let Some(url) = &config.audit_syslog.url {
        let files = receivers::to_syslog(config);
        let sink = Syslog::new(url, &files.tls(), config.audit_syslog.require_close_notify);
        let sink = sink.map_err(|error| files.wrong(&error, "audit.syslog"))?;
        streams.push(Stream { name: SYSLOG.to_owned(), sink: Sink::Syslog(sink) });
    }
    if let Some(url) = &config.audit_http.url {
        let (http, files) = (&config.audit_http, receivers::to_http(config));
        let text = |option: &str, file: &Option<SecretFile>| {
            let wrong = |file: &SecretFile, why: Unread| BootError::Other(file.wrong(option, &why));
            file.as_ref().map(|file| private::read_text(file).map_err(|why| wrong(file, why))).transpose()
        };
        let credentials = Credentials {
            token: text("audit.http.token_file", &http.token_file)?,
            key: text("audit.http.signature_key", &http.signature_key)?,
            headers: receivers::headers("audit.http.headers", http.headers.as_ref())?,
        };
        let sink = Http::new(url, &files.tls(), credentials).map_err(|error| files.wrong(&error, "audit.http"))?;
        streams.push(Stream { name: HTTP.to_owned(), sink: Sink::Http(Box::new(sink)) });
    }
    Ok(streams)
}

/// Delivers to all streams until the future is dropped.
pub async fn deliver(app: &App, streams: Vec<Stream>) {
    let mut running = JoinSet::new();
    for stream in streams {
        let app = app.clone();
        running.spawn(async move { app.deliver(stream).await });
    }
    match panic_of(&mut running).await {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Instance;
    use crate::config::Sources;
    use crate::loops::without_time;

    #[test]
    #[should_panic(expected = "timers are disabled")]
    fn a_stream_that_breaks_down_is_heard() {
        // red where `deliver` ignores the error of `join_next`.
        let folder = tempfile::tempdir().unwrap();
        let flags = vec![("data", folder.path().display().to_string()), ("hash.threads", "1".to_owned())];
        let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let instance = runtime.block_on(Box::pin(Instance::open(&config, None))).unwrap();
        let app = instance.app.clone();
        // The stream then cannot read what it delivers, and rests.
        runtime.block_on(instance.close());
        let sink = Sink::Syslog(Syslog::new("tcp://127.0.0.1:1", &app::reach::Tls::default(), false).unwrap());
        without_time(deliver(&app, vec![Stream { name: "syslog".to_owned(), sink }]));
    }
}
