//! The control socket, through which commands reach the server that holds the data folder.
//!
//! The socket is `portiere.sock` in the data folder, mode 0600. A connection carries one request and its answer, as
//! [`wire`] says. The caller must be the server's own user, or root; the listener must own the data folder, or be the
//! caller's user, or root: the kernel tells each side the user of the other one.

mod wire;

#[cfg(test)]
mod tests;

use crate::boot::{BootError, Instance};
use crate::cli::{Failure, Place, Reply, Request};
use crate::http::Site;
use crate::loops::{end_of, tell_of_panic};
use crate::net::Pause;
use app::App;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroize;

/// The socket's name in the data folder.
const NAME: &str = "portiere.sock";
/// The longest path that is used as it is: a socket's address holds 103 to 107 bytes, depending on the platform.
const LONGEST_PATH: usize = 100;
/// The longest request, in bytes.
pub const LONGEST_REQUEST: u32 = 1 << 20;
/// The longest answer, in bytes: a page of clients, each with a key set.
const LONGEST_ANSWER: u32 = 64 << 20;
/// The time within which a request must have arrived, and an answer must have been sent.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most callers at a time, more than the commands that run ([`Admission::command`]); others wait to be accepted.
///
/// [`Admission::command`]: crate::admission::Admission::command
const CALLERS: usize = 64;
/// At a stop, callers that wait to be accepted are let in until none comes for so long.
const AT_THE_DOOR: Duration = Duration::from_millis(50);
/// How long a stop waits for commands that run.
const LAST: Duration = Duration::from_secs(5);

/// What a task of the socket is, in the log.
const COMMAND: &str = "a command";

/// A request, with the version of the program that sent it.
#[derive(Serialize, Deserialize)]
struct Asked<R> {
    version: String,
    request: R,
}

/// The socket on which commands arrive. Dropping it removes it.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// The folder that the socket is in.
    data: PathBuf,
    app: App,
    /// The server itself, for the commands that ask about it.
    site: Option<Site>,
    owner: u32,
}

/// Listens in the data folder. Replaces a socket that a killed server left: `instance` proves that this process holds
/// the folder, and so is the only server.
pub fn listen(data: &Path, instance: &Instance) -> Result<Control, BootError> {
    let failed = |error: io::Error| BootError::Other(format!("the control socket {}/{NAME}: {error}", data.display()));
    let path = data.join(NAME);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let listener = short(data).and_then(|short| UnixListener::bind(&short.path)).map_err(failed)?;
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(failed)?;
    let owner = rustix::process::geteuid().as_raw();
    Ok(Control { listener, path, data: data.to_owned(), app: instance.app.clone(), site: None, owner })
}

/// Returns whether a server listens in the data folder.
pub fn is_heard(data: &Path) -> bool {
    short(data).and_then(|short| std::os::unix::net::UnixStream::connect(&short.path)).is_ok()
}

/// A path that fits into a socket's address.
struct Short {
    path: PathBuf,
    /// The folder behind the path, if the path goes through its file descriptor.
    _folder: Option<File>,
}

/// Returns the path of the socket in `data`, or one through the opened folder if that path is too long.
fn short(data: &Path) -> io::Result<Short> {
    let path = data.join(NAME);
    if path.as_os_str().len() <= LONGEST_PATH {
        return Ok(Short { path, _folder: None });
    }
    let folder = File::open(data)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()));
    Ok(Short { path, _folder: Some(folder) })
}

impl Control {
    /// Makes the socket answer for this server, too, and not only for its realm.
    pub fn of(mut self, site: Site) -> Self {
        self.site = Some(site);
        self
    }

    /// Answers requests until it is told to end. Then takes no more, and finishes those that run, within [`LAST`].
    pub async fn run(self, told: impl Future<Output = ()>) {
        let mut told = pin!(told);
        let (mut callers, mut pause) = (JoinSet::new(), Pause::default());
        loop {
            tokio::select! {
                biased;
                () = &mut told => break,
                Some(ended) = callers.join_next() => tell_of_panic(ended, COMMAND),
                came = self.listener.accept(), if callers.len() < CALLERS => match came {
                    Ok((stream, _)) => {
                        pause = Pause::default();
                        callers.spawn(self.answer(stream));
                    }
                    Err(error) => pause.after(error, "the control socket cannot accept").await,
                },
            }
        }
        // No new caller comes. Those that wait already are heard: otherwise they could not tell whether they were.
        drop(fs::remove_file(&self.path));
        while let Ok(Ok((stream, _))) = timeout(AT_THE_DOOR, self.listener.accept()).await {
            callers.spawn(self.answer(stream));
        }
        drop(self);
        let finished = timeout(LAST, end_of(&mut callers, COMMAND)).await;
        if finished.is_err() {
            tracing::warn!(commands = callers.len(), "stopped before some commands were finished");
        }
    }

    fn answer(&self, stream: UnixStream) -> impl Future<Output = ()> + Send + use<> {
        let server = (self.app.clone(), self.site.clone());
        answer(stream, server, self.data.clone(), self.owner)
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

async fn answer(mut stream: UnixStream, server: (App, Option<Site>), data: PathBuf, owner: u32) {
    let reply = match hear(&mut stream, owner).await {
        Ok(None) => return,
        Ok(Some((caller, request))) => match obey(&mut stream, server, (caller, request), &data).await {
            None => return,
            Some(reply) => reply,
        },
        Err(why) => Err(why),
    };
    if let Ok(Err(error)) = timeout(PATIENCE, wire::send(&mut stream, &reply)).await {
        tracing::warn!(%error, "a command disconnected before its answer");
    }
}

/// Returns the caller and its request; `None` if no request comes.
async fn hear(stream: &mut UnixStream, owner: u32) -> Result<Option<(u32, Request)>, Failure> {
    let caller = listened_to(stream, owner).map_err(|why| {
        tracing::warn!(%why, "a caller of the control socket was refused");
        Failure::Failed(why)
    })?;
    match timeout(PATIENCE, wire::receive::<Asked<Value>>(stream, LONGEST_REQUEST)).await {
        Err(_) => Ok(None),
        Ok(Err(error)) => Err(Failure::Failed(format!("the server cannot read the command: {error}"))),
        Ok(Ok(asked)) => Ok(Some((caller, read(asked)?))),
    }
}

/// Carries out a command once there is a place for it; `None` if its caller left a profile, which is for nobody else.
async fn obey(
    stream: &mut UnixStream,
    (app, site): (App, Option<Site>),
    (caller, request): (u32, Request),
    data: &Path,
) -> Option<Reply> {
    // Takes no place, as /readyz takes none: a server that is busy with commands is asked, too.
    if let (Request::Ready(command), Some(site)) = (&request, &site) {
        return Some(command.execute(site).await);
    }
    let _place = match &site {
        Some(site) => match site.admission.command().await {
            Ok(place) => Some(place),
            Err(wait) => return Some(Err(too_many(wait))),
        },
        None => None,
    };
    if let (Request::Profile(command), Some(site)) = (&request, &site) {
        return tokio::select! {
            reply = Box::pin(command.execute(site)) => Some(reply),
            () = left(stream) => None,
        };
    }
    let hears_workers = site.is_some_and(|site| site.hears_workers);
    let done = Box::pin(request.execute(&app, Place { data, serves: true, hears_workers }));
    Some(app::asked::by_operator(caller, done).await)
}

fn too_many(wait: Duration) -> Failure {
    let seconds = wait.as_secs_f64().ceil();
    Failure::Later(format!("the server is busy with other commands: try again in {seconds} s"))
}

/// Waits until the caller has gone.
async fn left(stream: &mut UnixStream) {
    let mut nothing = [0; 64];
    while matches!(stream.read(&mut nothing).await, Ok(1..)) {}
}

/// Returns the user of the machine who commands.
fn listened_to(stream: &UnixStream, owner: u32) -> Result<u32, String> {
    let caller = stream.peer_cred().map_err(|error| format!("the caller's user is not known: {error}"))?.uid();
    may_command(caller, owner).map(|()| caller)
}

fn may_command(caller: u32, owner: u32) -> Result<(), String> {
    match caller == owner || caller == 0 {
        true => Ok(()),
        false => Err(format!("user {caller} may not send commands to this server, only user {owner} and root")),
    }
}

/// Reads a request. A request of this program's own version is always understood, one of another version usually is. An
/// unknown field is not ignored: a caller who asked for more would be told that it was done.
fn read(asked: Asked<Value>) -> Result<Request, Failure> {
    let (theirs, ours) = (asked.version, env!("CARGO_PKG_VERSION"));
    let unknown = |why: String| {
        Failure::Failed(format!(
            "the server (version {ours}) does not know this command of version {theirs}: restart the server ({why})"
        ))
    };
    let said = (theirs != ours).then(|| Wiped(asked.request.clone()));
    let request: Request = serde_json::from_value(asked.request).map_err(|error| unknown(error.to_string()))?;
    let Some(said) = said else { return Ok(request) };
    let understood = Wiped(serde_json::to_value(&request).map_err(|error| unknown(error.to_string()))?);
    match unheard(&said.0, &understood.0) {
        Some(name) => Err(unknown(format!("unknown field `{name}`"))),
        None => Ok(request),
    }
}

/// A request beside the one that is carried out: it may hold a password, and is cleared after use.
struct Wiped(Value);

impl Drop for Wiped {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::String(text) => text.zeroize(),
        Value::Array(items) => items.iter_mut().for_each(wipe),
        Value::Object(fields) => fields.values_mut().for_each(wipe),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the name of a field that was sent and not understood. A field without content may be left out.
fn unheard<'a>(said: &'a Value, understood: &Value) -> Option<&'a str> {
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(given) => !given,
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    said.as_object()?.iter().find_map(|(name, value)| match understood.get(name) {
        Some(known) => unheard(value, known),
        None => Some(name.as_str()).filter(|_| !nothing(value)),
    })
}

/// Has the server that runs on `data` carry out `request`; `None` if no server runs there.
pub async fn ask(data: &Path, request: &Request) -> Result<Option<Reply>, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("the control socket {}/{NAME}: {error}", data.display()));
    let connected = match short(data) {
        Ok(short) => timeout(PATIENCE, UnixStream::connect(&short.path)).await,
        Err(error) => Ok(Err(error)),
    };
    let mut stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(Failure::Failed(format!("{} is not a folder; is --data right?", data.display())));
        }
        Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
            let why = format!("{} belongs to another user: run this as that user or as root", data.display());
            return Err(Failure::Failed(why));
        }
        Ok(Err(error)) => return Err(failed(error)),
        Err(_) => return Err(Failure::Later(format!("the server {LATE}"))),
    };
    trusted(&stream, data).map_err(failed)?;
    let asked = Asked { version: env!("CARGO_PKG_VERSION").to_owned(), request };
    // A server that refuses the caller answers without reading the request.
    let sent = timeout(PATIENCE, wire::send(&mut stream, &asked)).await;
    match timeout(request.patience(), wire::receive(&mut stream, LONGEST_ANSWER)).await {
        Ok(Ok(reply)) => Ok(Some(reply)),
        Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            match sent.map_err(io::Error::from).flatten() {
                Err(error) if is_gone(&error) => {
                    return Err(Failure::Later("the server is stopping: try again in a moment".into()));
                }
                sent => sent.map_err(failed)?,
            }
            Err(unanswered(request, "ended before it answered"))
        }
        Ok(Err(error)) if is_gone(&error) => Err(unanswered(request, "stopped before it answered")),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(unanswered(request, LATE)),
    }
}

/// What a server did that hangs, or waits for something itself.
const LATE: &str = "did not answer in time";

/// Says why there is no answer, and what that leaves in doubt. A question can be asked again.
fn unanswered(request: &Request, why: &str) -> Failure {
    match request.is_question() {
        true => Failure::Later(format!("the server {why}")),
        false => request.doubted(Failure::in_doubt(&format!("the server {why}"))),
    }
}

/// Returns whether the other side has gone away.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Refuses a listener that could not read the database anyway: the answers hold secrets.
fn trusted(stream: &UnixStream, data: &Path) -> io::Result<()> {
    let listener = stream.peer_cred()?.uid();
    let own = rustix::process::geteuid().as_raw();
    match listener == own || listener == 0 || listener == fs::metadata(data)?.uid() {
        true => Ok(()),
        false => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("another user ({listener}) listens there")))
        }
    }
}
