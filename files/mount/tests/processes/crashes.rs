//! Processes that are killed at any step of a script leave a prefix of it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::harness::{World, can_mount};

/// Rounds of each test; an environment variable raises the number.
fn rounds() -> usize {
    let asked = std::env::var("APUS_FS_CRASHES").ok();
    asked.and_then(|number| number.parse().ok()).unwrap_or(4)
}

/// A step of the script.
#[derive(Clone, Debug)]
enum ScriptStep {
    Create(String),
    Append(String),
    Rename(String, String),
    Remove(String),
    Directory(String),
    /// Everything before survives from now on.
    Sync(String),
}

/// Contents of a directory: files with their contents, and directories.
type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

fn line(step: usize) -> Vec<u8> {
    format!("step {step} {}\n", "x".repeat(step * 37 % 3_000)).into_bytes()
}

fn script(seed: usize, steps: usize) -> Vec<ScriptStep> {
    let mut script = vec![ScriptStep::Create("log".to_owned())];
    for index in 0..steps {
        let name = |number: usize| format!("file-{number}");
        script.push(match (index + seed) % 7 {
            0 => ScriptStep::Directory(format!("directory-{index}")),
            1 | 2 => ScriptStep::Create(name(index)),
            3 if index > 0 => ScriptStep::Rename(name(index - 1), format!("moved-{index}")),
            4 => ScriptStep::Append("log".to_owned()),
            5 if index >= 7 => ScriptStep::Remove(format!("moved-{}", index - 2)),
            6 if index % 3 == 0 => ScriptStep::Sync("log".to_owned()),
            _ => ScriptStep::Append("log".to_owned()),
        });
    }
    // A seed that starts in the middle lacks the files that its first steps refer to.
    let mut known = BTreeMap::new();
    script.retain(|step| match step {
        ScriptStep::Create(name) => known.insert(name.clone(), ()).is_none(),
        ScriptStep::Rename(from, to) => {
            known.remove(from).is_some_and(|()| known.insert(to.clone(), ()).is_none())
        }
        ScriptStep::Remove(name) => known.remove(name).is_some(),
        ScriptStep::Append(_) | ScriptStep::Directory(_) | ScriptStep::Sync(_) => true,
    });
    script
}

/// Does a step in a directory.
fn perform(place: &Path, index: usize, step: &ScriptStep) -> io::Result<()> {
    match step {
        ScriptStep::Create(name) => {
            let mut file =
                OpenOptions::new().write(true).create_new(true).open(place.join(name))?;
            file.write_all(&line(index))
        }
        ScriptStep::Append(name) => {
            let mut file = OpenOptions::new().append(true).open(place.join(name))?;
            file.write_all(&line(index))
        }
        ScriptStep::Rename(from, to) => fs::rename(place.join(from), place.join(to)),
        ScriptStep::Remove(name) => fs::remove_file(place.join(name)),
        ScriptStep::Directory(name) => fs::create_dir(place.join(name)),
        ScriptStep::Sync(name) => {
            OpenOptions::new().append(true).open(place.join(name))?.sync_all()
        }
    }
}

/// The trees after each prefix of the script. A file that is created may be there without its
/// contents: these are two operations.
fn prefixes(script: &[ScriptStep]) -> Vec<Tree> {
    let mut tree = Tree::new();
    let mut trees = vec![tree.clone()];
    for (index, step) in script.iter().enumerate() {
        match step {
            ScriptStep::Create(name) => {
                tree.insert(name.into(), Some(Vec::new()));
                trees.push(tree.clone());
                tree.insert(name.into(), Some(line(index)));
            }
            ScriptStep::Append(name) => {
                tree.get_mut(Path::new(name)).unwrap().as_mut().unwrap().extend(line(index));
            }
            ScriptStep::Rename(from, to) => {
                let node = tree.remove(Path::new(from)).unwrap();
                tree.insert(to.into(), node);
            }
            ScriptStep::Remove(name) => drop(tree.remove(Path::new(name))),
            ScriptStep::Directory(name) => drop(tree.insert(name.into(), None)),
            ScriptStep::Sync(_) => {}
        }
        trees.push(tree.clone());
    }
    trees
}

fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap();
        if name == Path::new(".apus-fs") {
            continue;
        }
        let contents = path.is_file().then(|| fs::read(&path).unwrap());
        tree.insert(name.to_owned(), contents);
    }
    tree
}

/// Asserts that a tree results from a prefix of the script with at least `synced` steps.
#[track_caller]
fn assert_prefix(script: &[ScriptStep], found: &Tree, synced: usize) {
    let least = prefixes(&script[..synced]).len() - 1;
    let trees = prefixes(script);
    let fits = trees.iter().skip(least).any(|tree| tree == found);
    assert!(fits, "no prefix with {synced} steps or more is {:?}", found.keys());
}

/// FS-10, FS-11: client and server are killed at the same step.
#[test]
fn what_is_left_when_both_are_killed_is_a_prefix() {
    if !can_mount() {
        return;
    }
    for round in 0..rounds() {
        let script = script(round, 150);
        let kill_at = (round * 41 + 7) % script.len();
        let world = World::new();
        let server = world.serve(None);
        let address = server.ready.clone();
        let (mount, place) = world.mount(&address, "mount");
        let (progress, synced) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for (index, step) in script.iter().enumerate() {
                    if perform(&place, index, step).is_err() {
                        return;
                    }
                    if matches!(step, ScriptStep::Sync(_)) {
                        synced.store(index + 1, Ordering::SeqCst);
                    }
                    progress.store(index + 1, Ordering::SeqCst);
                }
            });
            while progress.load(Ordering::SeqCst) < kill_at {
                thread::yield_now();
            }
            mount.kill();
            server.kill();
        });
        // The changes in the server's log are applied when it starts again.
        let server = world.serve(Some(&address));
        assert!(server.stop().success());
        assert_prefix(&script, &read_tree(&world.directory()), synced.load(Ordering::SeqCst));
    }
}

/// FS-12, FS-13: the server is killed at some steps, and the client continues as if it had not
/// been.
#[test]
fn a_script_ends_complete_although_the_server_is_killed() {
    if !can_mount() {
        return;
    }
    for round in 0..rounds() {
        let script = script(round + 3, 150);
        let world = World::new();
        let server = world.serve(None);
        let address = server.ready.clone();
        let (mount, place) = world.mount(&address, "mount");
        let progress = AtomicUsize::new(0);
        let server = thread::scope(|scope| {
            let mut server = server;
            let worker = scope.spawn(|| {
                for (index, step) in script.iter().enumerate() {
                    perform(&place, index, step)
                        .unwrap_or_else(|error| panic!("{step:?}: {error}"));
                    progress.store(index + 1, Ordering::SeqCst);
                }
            });
            for kill in 1..=2 {
                let at = kill * (round * 13 + 29) % script.len();
                while progress.load(Ordering::SeqCst) < at && !worker.is_finished() {
                    thread::yield_now();
                }
                server.kill();
                server = world.serve(Some(&address));
            }
            server
        });
        assert!(mount.stop().success() && server.stop().success());
        assert_eq!(read_tree(&world.directory()), *prefixes(&script).last().unwrap());
    }
}
