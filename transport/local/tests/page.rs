//! Pages that several processes share: their owners, and their fate after the end of the
//! distributor.

use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, yield_now};

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

fn read(page: &SharedPage) -> u64 {
    page.word(8).load(Ordering::Relaxed)
}

/// Members join and leave, each the distributor in its turn: the page is always the same one.
#[test]
fn a_page_outlives_its_distributors() {
    let name = name("outlives");
    let first = begin(&name);
    page(&first).word(8).store(7, Ordering::Relaxed);
    let mut oldest = first;
    for _ in 0..5 {
        let next = begin(&name);
        assert_eq!(read(&page(&next)), 7);
        let version = next.version();
        drop(oldest);
        // Between the end of one distributor and the start of the next, a newcomer has a new page.
        // The other member switches to it, unless the other member is faster.
        let newcomer = begin(&name);
        let is_old = read(&page(&newcomer)) == 7;
        page(&newcomer).word(8).store(8, Ordering::Relaxed);
        while read(&page(&next)) != 8 {
            yield_now();
        }
        assert_eq!(next.version() == version, is_old, "a new page has a new version");
        drop(next);
        page(&newcomer).word(8).store(7, Ordering::Relaxed);
        oldest = newcomer;
    }
}

#[test]
fn a_page_ends_with_its_last_member() {
    let name = name("ends");
    let members = [(); 3].map(|()| begin(&name));
    members.iter().for_each(|member| page(member).word(8).store(7, Ordering::Relaxed));
    drop(members);
    assert_eq!(read(&page(&begin(&name))), 0);
}

/// Treatment of a connection by a process.
type Act = fn(&mut UnixStream);

/// Starts to listen under the name of a page, as a process that is no distributor.
fn listen(test: &str) -> (PeerName, UnixListener) {
    let name = name(test);
    let text = name.to_string();
    let address = SocketAddr::from_abstract_name(text.trim_start_matches('@')).unwrap();
    (name, UnixListener::bind_addr(&address).unwrap())
}

/// Each member tries again when it has been refused, so that the second connection shows that the
/// first one gave no page.
#[test]
fn a_process_that_hands_out_no_page_is_no_distributor() {
    let say_nothing = |_: &mut UnixStream| {};
    let no_file = |peer: &mut UnixStream| peer.write_all(&[1]).unwrap();
    let too_much = |peer: &mut UnixStream| peer.write_all(&[1; 100]).unwrap();
    let hang_up = |peer: &mut UnixStream| peer.shutdown(std::net::Shutdown::Both).unwrap();
    let all: [(&str, Act); 4] = [
        ("nothing", say_nothing),
        ("no-file", no_file),
        ("too-much", too_much),
        ("hang-up", hang_up),
    ];
    let check = |test: &str, act: Act| {
        let (name, listener) = listen(test);
        let member = begin(&name);
        let mut first = listener.accept().unwrap().0;
        act(&mut first);
        let _second = listener.accept().unwrap();
        assert!(member.page().is_none(), "{test}");
        // It has a page as soon as the name is free.
        drop(listener);
        page(&member);
    };
    // Each case waits for seconds.
    thread::scope(|scope| {
        for (test, act) in all {
            scope.spawn(move || check(test, act));
        }
    });
}

#[test]
fn members_of_another_length_share_nothing() {
    let name = name("length");
    let first = begin(&name);
    page(&first);
    let other = Membership::begin(name.clone(), 2 * LEN, PeerPolicy::SameUser).unwrap();
    let same = begin(&name);
    page(&same);
    assert!(other.page().is_none());
    drop((first, same));
    // Its page has another length, when the name is free.
    assert_eq!(page(&other).len(), 2 * LEN);
}

/// Users are a property of threads: a thread of this process becomes a user that the policy
/// refuses.
#[test]
fn a_process_of_another_user_gets_no_page() {
    let other = rustix::process::Uid::from_raw(12_345);
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let name = name("user");
    let own = begin(&name);
    page(&own);
    thread::scope(|scope| {
        let begun = scope.spawn(|| {
            rustix::thread::set_thread_res_uid(other, other, other).unwrap();
            // It would accept root's page.
            Membership::begin(name.clone(), LEN, PeerPolicy::Users(vec![0])).unwrap()
        });
        let refused = begun.join().unwrap();
        // These connect later and have the page, so the refused one has had its turn.
        (0..10).for_each(|_| drop(page(&begin(&name))));
        assert!(refused.page().is_none());
        // It has a page of its user when the name is free.
        drop(own);
        page(&refused);
    });
}
