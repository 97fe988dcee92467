//! A server in a user namespace that does not map its own user: all other users look like its own.

use std::time::Duration;

use apus_local::{Connecting, Local, PeerName, PeerPolicy, PollSet};

use crate::child::{ATTACKER, Other, VICTIM, config, name, report};

/// The victim: accepts processes of its own user, as it sees it, until it has rejected or accepted
/// one.
pub(crate) fn serve(name: &PeerName) {
    let local = match Local::new(Some(name), config()) {
        Ok(local) => local,
        Err(error) => return report(&format!("cannot listen: {error}")),
    };
    report(&format!("listens as {}", rustix::process::geteuid().as_raw()));
    let (stop, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        crate::child::wait_for_end();
        let _ = stop.send(());
    });
    let mut poll_set = PollSet::default();
    while stopped.try_recv().is_err() {
        local.poll_sockets(&mut poll_set, Some(Duration::from_millis(10))).unwrap();
    }
}

/// A client that would accept any server: reports the server's answer.
pub(crate) fn connect(name: &PeerName) {
    let mut config = config();
    config.peer_policy = PeerPolicy::Anyone;
    let result = Connecting::start(name, &config).and_then(|it| it.finish(Duration::from_secs(60)));
    report(&result.map_or_else(|error| error.to_string(), |_| "accepted".into()));
}

#[test]
fn an_unmapped_user_is_not_taken_for_the_own_user() {
    let name = name();
    let unmapped = ["unshare", "--user", "--"];
    let Some(mut server) = Other::start("unmapped-server", &name, VICTIM, &unmapped) else {
        return;
    };
    let Some(line) = server.next() else {
        eprintln!("SKIPPED: this system has no user namespaces for ordinary users");
        return;
    };
    let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").unwrap();
    assert_eq!(line, format!("listens as {}", overflow.trim()));
    let mut client = Other::start("client", &name, ATTACKER, &[]).unwrap();
    let seen = client.next().expect("the client reports the server's reply");
    assert_eq!(seen, "the peer rejected the connection: user not allowed");
}
