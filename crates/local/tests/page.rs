//! Pages that several processes share: who keeps them, and what becomes of them when the keeper ends.

use std::io;
use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::yield_now;

use apus_local::{Membership, PeerName, PeerPolicy, SharedPage};

const LEN: usize = 4096;

/// Returns a name of this process and test.
fn name(test: &str) -> PeerName {
    PeerName::of_page(&format!("test/{}/{test}", std::process::id()))
}

fn begin(name: &PeerName) -> Membership {
    Membership::begin(name.clone(), LEN, PeerPolicy::SameUser).unwrap()
}

/// Waits for the page.
fn page(membership: &Membership) -> Arc<SharedPage> {
    loop {
        if let Some(page) = membership.page() {
            return page;
        }
        yield_now();
    }
}

#[test]
fn all_members_have_one_page_and_it_outlives_its_keeper() {
    let name = name("outlives");
    let first = begin(&name);
    page(&first).word(8).store(7, Ordering::Relaxed);
    let second = begin(&name);
    assert_eq!(page(&second).word(8).load(Ordering::Relaxed), 7);
    let version = second.version();
    drop(first);
    let visited = loop {
        // Between the end of one keeper and the begin of the next there is none.
        if let Ok(Some(visited)) = Membership::visit(&name, LEN, &PeerPolicy::SameUser) {
            break visited;
        }
        yield_now();
    };
    assert_eq!(visited.word(8).load(Ordering::Relaxed), 7, "the second one keeps the same page");
    assert_eq!(second.version(), version);
    let third = begin(&name);
    assert_eq!(page(&third).word(8).load(Ordering::Relaxed), 7);
    drop((second, third));
    let visited = Membership::visit(&name, LEN, &PeerPolicy::SameUser).unwrap();
    assert!(visited.is_none(), "it ends with its last member");
}

#[test]
fn a_member_goes_over_to_the_page_of_a_faster_process() {
    let name = name("faster");
    let first = begin(&name);
    page(&first);
    let second = begin(&name);
    let before = page(&second);
    let version = second.version();
    // A process of the same name that the first one's end lets in before the second one has noticed.
    drop(first);
    let third = begin(&name);
    page(&third).word(16).store(9, Ordering::Relaxed);
    while page(&second).word(16).load(Ordering::Relaxed) != 9 {
        yield_now();
    }
    let is_new = before.word(16).load(Ordering::Relaxed) != 9;
    assert_eq!(second.version() > version, is_new, "a new page has a new version");
}

/// Returns a listener under the name of a page, which is no keeper.
fn listen(test: &str) -> (PeerName, UnixListener) {
    let name = name(test);
    let text = name.to_string();
    let address = SocketAddr::from_abstract_name(text.trim_start_matches('@')).unwrap();
    (name, UnixListener::bind_addr(&address).unwrap())
}

#[test]
fn a_keeper_that_hands_out_no_page_is_an_error() {
    let (name, listener) = listen("none");
    let said = |what: fn(UnixStream) -> io::Result<Option<UnixStream>>| {
        std::thread::scope(|scope| {
            let visit = scope.spawn(|| Membership::visit(&name, LEN, &PeerPolicy::SameUser));
            let _kept = what(listener.accept().unwrap().0).unwrap();
            visit.join().unwrap().map(|page| page.is_some())
        })
    };
    let kind = |result: io::Result<bool>| result.unwrap_err().kind();
    assert_eq!(kind(said(|peer| Ok(Some(peer)))), io::ErrorKind::TimedOut, "it says nothing");
    assert_eq!(kind(said(|_| Ok(None))), io::ErrorKind::TimedOut, "it hangs up");
    let without_file = said(|mut peer| peer.write_all(&[1]).map(|()| Some(peer)));
    assert_eq!(kind(without_file), io::ErrorKind::TimedOut, "no file");
    // A member that waits for such a keeper has no page, and ends when it is dropped.
    let member = begin(&name);
    let connected = listener.accept().unwrap();
    assert!(member.page().is_none());
    drop((member, connected));
}

#[test]
fn members_of_another_length_share_nothing() {
    let name = name("length");
    let first = begin(&name);
    page(&first);
    let visited = Membership::visit(&name, 2 * LEN, &PeerPolicy::SameUser);
    assert_eq!(visited.unwrap_err().kind(), io::ErrorKind::InvalidData);
}
