//! The socket itself: which callers are heard, and what is understood.

use super::*;
use crate::config::{Config, Sources};
use serde_json::json;
use tokio::io::AsyncWriteExt;

async fn instance(data: &Path) -> Instance {
    let flags = vec![("data", data.display().to_string()), ("hash.threads", "1".to_owned())];
    let config = Config::load(Sources { flags, ..Sources::default() }).unwrap();
    Instance::open(&config, Some(&config.public_url(8080))).await.unwrap()
}

/// Runs `scenario` beside a control socket in a new folder.
async fn beside(owner: Option<u32>, scenario: impl AsyncFnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let server = instance(folder.path()).await;
    let mut control = listen(folder.path(), &server).unwrap();
    control.owner = owner.unwrap_or(control.owner);
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        () = scenario(folder.path()) => {}
    }
    server.close().await;
}

/// Returns the answer to these bytes.
async fn say(data: &Path, bytes: &[u8]) -> io::Result<Reply> {
    let mut stream = UnixStream::connect(data.join(NAME)).await?;
    stream.write_all(bytes).await?;
    stream.shutdown().await?;
    wire::receive(&mut stream, LONGEST_ANSWER).await
}

fn framed(text: &str) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
}

fn why(reply: io::Result<Reply>) -> String {
    match reply {
        Ok(Err(Failure::Failed(why) | Failure::NotFound(why))) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_request_is_carried_out() {
    beside(None, async |data| {
        let add: Request = serde_json::from_value(json!({ "Group": { "Add": { "name": "staff" } } })).unwrap();
        let reply = ask(data, &add).await.unwrap().unwrap();
        let done = reply.unwrap();
        assert_eq!((&*done.text, &done.json["name"]), ("group staff added", &json!("staff")));
        assert_eq!(ask(data, &add).await.unwrap().unwrap().unwrap_err().exit_code(), 1);
    })
    .await;
}

#[tokio::test]
async fn nobody_else_can_reach_the_socket() {
    beside(None, async |data| {
        let mode = fs::metadata(data.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    })
    .await;
}

#[test]
fn only_the_servers_own_user_and_root_may_command_it() {
    assert!(may_command(1000, 1000).is_ok() && may_command(0, 1000).is_ok());
    assert!(may_command(1001, 1000).is_err() && may_command(1000, 0).is_err());
}

/// The socket's folder keeps others out; if it ever does not, they are turned away before they are heard.
#[tokio::test]
async fn another_user_is_turned_away_unheard() {
    let own = rustix::process::geteuid().as_raw();
    beside(Some(own + 1), async |data| {
        let reply = say(data, &framed("certainly not JSON")).await;
        let expected = if own == 0 { "cannot read the command" } else { "may not send commands to this server" };
        assert!(why(reply).contains(expected));
    })
    .await;
}

#[tokio::test]
async fn garbage_is_answered_and_the_next_request_is_served() {
    beside(None, async |data| {
        assert!(why(say(data, &framed("certainly not JSON")).await).contains("cannot read the command"));
        assert!(why(say(data, &framed("{}")).await).contains("cannot read the command"));
        assert!(why(say(data, b"GE").await).contains("cannot read the command"));
        let promised = LONGEST_REQUEST + 1;
        assert!(why(say(data, &promised.to_be_bytes()).await).contains("is longer than"));
        let short = [&1000_u32.to_be_bytes()[..], b"less"].concat();
        assert!(why(say(data, &short).await).contains("cannot read the command"));
        let newer = json!({ "version": "99.0.0", "request": { "Frobnicate": null } }).to_string();
        let said = why(say(data, &framed(&newer)).await);
        assert!(said.contains("99.0.0") && said.contains("restart the server"), "{said}");
        assert!(ask(data, &Request::SetupLink).await.unwrap().unwrap().is_ok());
    })
    .await;
}

/// Red without `unheard` in `read`: the server would do half of what was asked, and call it done.
#[tokio::test]
async fn what_only_a_newer_version_can_be_asked_is_not_left_out() {
    beside(None, async |data| {
        for (more, heard) in [
            (json!({}), true),
            (json!({ "until": null, "quietly": false, "also": [] }), true),
            (json!({ "until": "2030-01-31" }), false),
            (json!({ "quietly": true }), false),
            (json!({ "also": ["bob"] }), false),
        ] {
            let mut named = json!({ "name": "ada" });
            named.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let newer = json!({ "version": "99.0.0", "request": { "User": { "Disable": named } } }).to_string();
            let said = why(say(data, &framed(&newer)).await);
            let expected = if heard { "no user is called ada" } else { "unknown field" };
            assert!(said.contains(expected), "{more}: {said}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_socket_that_a_killed_server_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    assert!(ask(folder.path(), &Request::SetupLink).await.unwrap().is_none(), "nobody listens there");
    let server = instance(folder.path()).await;
    let control = listen(folder.path(), &server).unwrap();
    let setup = Request::SetupLink;
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        reply = ask(folder.path(), &setup) => assert!(reply.unwrap().unwrap().is_ok()),
    }
    assert!(!path.exists(), "and removed at the end");
    server.close().await;
}

#[tokio::test]
async fn a_long_path_is_reached_through_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("a-rather-long-name-of-a-folder".repeat(5)).join("data");
    let server = instance(&deep).await;
    let control = listen(&deep, &server).unwrap();
    assert!(deep.join(NAME).as_os_str().len() > 107);
    let setup = Request::SetupLink;
    tokio::select! {
        () = control.run(std::future::pending()) => panic!("the control socket ended"),
        reply = ask(&deep, &setup) => assert!(reply.unwrap().unwrap().is_ok()),
    }
    server.close().await;
}

#[tokio::test]
async fn nobody_listens_where_there_is_nothing() {
    let folder = tempfile::tempdir().unwrap();
    assert!(ask(folder.path(), &Request::SetupLink).await.unwrap().is_none());
    assert!(ask(&folder.path().join("none"), &Request::SetupLink).await.unwrap().is_none());
    std::fs::write(folder.path().join("file"), "").unwrap();
    let told = ask(&folder.path().join("file"), &Request::SetupLink).await;
    let Err(Failure::Failed(why)) = told else { panic!("{told:?}") };
    assert!(why.ends_with("file is not a folder; is --data right?"), "{why}");
}

#[test]
fn a_question_without_an_answer_leaves_nothing_in_doubt() {
    // Red with one answer for both in `unanswered`: scripts would not ask again.
    let asks = |request: Value| serde_json::from_value::<Request>(request).unwrap();
    for (request, code) in [(json!({ "Node": "List" }), 75), (json!("SetupLink"), 1)] {
        let failure = unanswered(&asks(request.clone()), LATE);
        assert_eq!((failure.exit_code(), failure.told().contains("may or may not")), (code, code == 1), "{request}");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_told_of_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(NAME)).unwrap();
    let gone = async {
        loop {
            drop(listener.accept().await);
        }
    };
    let setup = Request::SetupLink;
    let asked = async {
        for _ in 0..20 {
            let Err(failure) = ask(folder.path(), &setup).await else { panic!("nobody answered") };
            let why = failure.told();
            assert!(why.starts_with("the server ") && !why.contains("os error"), "{why}");
            // Red with Failed where it was not heard: scripts try again after 75 alone.
            assert_eq!(failure.exit_code() == 75, why.contains("try again"), "{why}");
        }
    };
    tokio::select! {
        () = gone => unreachable!(),
        () = asked => {}
    }
}

#[tokio::test]
async fn a_socket_full_of_callers_who_say_nothing_hears_the_stop() {
    // Red where `run` waits for one of them to leave, and listens to nothing else meanwhile: as long as they please.
    let folder = tempfile::tempdir().unwrap();
    let server = instance(folder.path()).await;
    let control = listen(folder.path(), &server).unwrap();
    let mut silent = Vec::new();
    for _ in 0..CALLERS {
        silent.push(UnixStream::connect(folder.path().join(NAME)).await.unwrap());
    }
    let waits = UnixStream::connect(folder.path().join(NAME)).await.unwrap();
    let (tell, told) = tokio::sync::oneshot::channel::<()>();
    let mut run = Box::pin(control.run(async move { drop(told.await) }));
    let full = timeout(AT_THE_DOOR, &mut run).await;
    assert!(full.is_err(), "nobody told it");
    let began = std::time::Instant::now();
    drop(tell);
    run.await;
    // They are given up after LAST, before their own time is over.
    assert!(began.elapsed() < LAST + (PATIENCE - LAST) / 2, "{:?}", began.elapsed());
    drop((silent, waits));
    server.close().await;
}
