//! Walks, listings and contents.

use apus_fs_core::wire::{
    Data, Errno, Handle, LeaseKind, ListTree, Listing, NewNode, NodeRange, PathStep, Record,
    Response, SeekTarget, SessionRequest, Time,
};

use crate::world::{World, name};

use LeaseKind::{Exclusive, Shared};

/// A world with `/a/b/file` (8 bytes) and `/a/link`, where no client has a lease.
fn world() -> World {
    let mut world = World::with_clients(2);
    let root = world.root;
    world.lease(0, &[(root, Exclusive)]);
    let [a, b, file, link] = [(); 4].map(|()| world.new_ino(0));
    let target = NewNode::Symlink { target: "b/file".into() };
    let data = Data { start: 0, length: 8 };
    let write =
        Record::Write { file: Handle::created(file), offset: 0, data, time: Time::default() };
    let records = [
        World::create(root, "a", a, NewNode::Directory),
        World::create(Handle::created(a), "b", b, NewNode::Directory),
        World::create(Handle::created(b), "file", file, NewNode::File),
        World::create(Handle::created(a), "link", link, target),
        write,
    ];
    world.apply(0, &records, b"contents");
    world.join(0);
    world.release_all(0, &[root]);
    world
}

fn list(world: &mut World, id: usize, list: ListTree) -> Vec<Listing> {
    match world.ask(id, SessionRequest::ListTree(list)) {
        Response::Listed(listings) => listings,
        other => panic!("{other:?}"),
    }
}

fn tree(directory: Handle) -> ListTree {
    ListTree {
        directory,
        after: None,
        depth: 100,
        entries: 1_000,
        inline: 4_096,
        inline_total: 10_000,
        lease: Shared,
    }
}

#[test]
fn a_walk_returns_each_step() {
    let mut world = world();
    let root = world.root;
    let walk = |world: &mut World, path: &[&str], lease| match world
        .ask(0, World::look_up(root, path, lease))
    {
        Response::Found { steps, .. } => steps,
        other => panic!("{other:?}"),
    };
    let steps = walk(&mut world, &["a", "b", "file"], Exclusive);
    let entries: Vec<_> = steps
        .iter()
        .map(|step| match step {
            PathStep::Found(entry) => (entry.lease, entry.contents.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let contents = Some("contents".into());
    assert_eq!(entries, [(Shared, None), (Shared, None), (Exclusive, contents)]);
    assert_eq!(walk(&mut world, &["a", "x", "y"], Shared)[1..], [PathStep::Absent]);
    let through = walk(&mut world, &["a", "link", "y"], Shared);
    assert!(
        matches!(&through[1], PathStep::Found(link) if link.contents.as_deref() == Some(b"b/file"))
    );
    assert_eq!(through[2..], [PathStep::Failed(Errno::NOTDIR)]);
}

#[test]
fn a_tree_is_listed_in_one_response() {
    let mut world = world();
    let root = world.root;
    let listings = list(&mut world, 0, tree(root));
    let names: Vec<Vec<_>> = listings
        .iter()
        .map(|listing| listing.entries.iter().map(|(name, _)| name.to_string()).collect())
        .collect();
    assert_eq!(names, [vec!["a"], vec!["b", "link"], vec!["file"]]);
    assert!(listings.iter().all(|listing| listing.is_complete && listing.lease == Shared));
    let entries = listings.iter().flat_map(|listing| &listing.entries);
    assert!(entries.clone().all(|(_, entry)| entry.lease == Shared));
    assert_eq!(listings[2].entries[0].1.contents.as_deref(), Some(&b"contents"[..]));
    // Exclusive leases are given where they are free.
    world.lease(1, &[(listings[2].entries[0].1.handle, Shared)]);
    let listings = list(&mut world, 0, ListTree { lease: Exclusive, ..tree(root) });
    let leases: Vec<_> = listings.iter().map(|listing| listing.lease).collect();
    assert_eq!((&leases[..], listings[2].entries[0].1.lease), (&[Exclusive; 3][..], Shared));
}

#[test]
fn a_listing_goes_on_where_it_ended() {
    let mut world = world();
    let root = world.root;
    let a = world.find(0, root, "a", Shared).handle;
    let first = list(&mut world, 0, ListTree { entries: 1, depth: 1, ..tree(a) });
    assert_eq!((first.len(), first[0].entries.len(), first[0].is_complete), (1, 1, false));
    let after = Some(name("b"));
    let rest = list(&mut world, 0, ListTree { after, entries: 1, depth: 1, ..tree(a) });
    assert_eq!((rest[0].entries[0].0.as_bytes(), rest[0].is_complete), (&b"link"[..], true));
    let inline_total = 7;
    let listings = list(&mut world, 0, ListTree { inline_total, ..tree(root) });
    assert_eq!(listings[2].entries[0].1.contents, None);
}

/// FSSERVE-3: a node under another session's exclusive lease is recalled, or returned without a
/// lease.
#[test]
fn a_listing_gives_no_lease_on_what_is_out_of_date() {
    let mut world = world();
    let root = world.root;
    let a = world.find(0, root, "a", Shared).handle;
    let b = world.find(0, a, "b", Exclusive);
    assert_eq!(b.lease, Exclusive);
    // Two levels down: a prefetch, which interrupts no other client.
    let listings = list(&mut world, 1, tree(root));
    assert_eq!(listings.len(), 2);
    let below = &listings[1].entries;
    assert_eq!((below[0].1.lease, below[1].1.lease), (LeaseKind::None, Shared));
    assert_eq!(world.callback(0), None);
    // The requested directory: its entries are current.
    let call = world.send(1, SessionRequest::ListTree(ListTree { depth: 1, ..tree(a) }));
    assert!(world.is_waiting(call));
    let (callback, nodes) = world.recall(0);
    assert_eq!((nodes[0].node, nodes[0].keep), (b.handle, Shared));
    world.answer(callback, &[]);
    match world.response(call) {
        Some(Response::Listed(listings)) => assert_eq!(listings[0].entries[0].1.lease, Shared),
        other => panic!("{other:?}"),
    }
}

/// FSSERVE-3.
#[test]
fn reads_wait_for_exclusive_leases_of_others() {
    let mut world = world();
    let root = world.root;
    let a = world.find(0, root, "a", Shared).handle;
    let b = world.find(0, a, "b", Shared).handle;
    let file = world.find(0, b, "file", Exclusive).handle;
    let range = |offset, length| NodeRange { file, offset, length };
    let ranges = vec![range(0, 4), range(6, 100), range(8, 1)];
    let own = world.ask_with(0, SessionRequest::Read { ranges: ranges.clone() }, b"");
    let Response::ReadDone(lengths) = own.response else { panic!("{own:?}") };
    let lengths: Vec<_> = lengths.iter().map(|(length, _)| *length).collect();
    assert_eq!((&lengths[..], &own.payload[..]), (&[4, 2, 0][..], &b"contts"[..]));
    let waiting = [
        SessionRequest::Read { ranges },
        SessionRequest::ListXattr { node: file },
        SessionRequest::GetXattr { node: file, name: "user.x".into() },
        SessionRequest::Seek { file, offset: 0, target: SeekTarget::Hole },
    ]
    .map(|request| world.send(1, request));
    assert!(waiting.iter().all(|call| world.is_waiting(*call)));
    let status = match world.ask(1, SessionRequest::Status) {
        Response::Status(status) => status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status.waiting[0], (file, "client 1".into(), "client 0".into()));
    assert!(matches!(world.ask(1, SessionRequest::StatFs), Response::Space(_)));
    let (callback, _) = world.recall(0);
    world.answer(callback, &[]);
    assert!(waiting.iter().all(|call| !world.is_waiting(*call)));
    assert_eq!(world.response(waiting[3]), Some(Response::Position(8)));
}
