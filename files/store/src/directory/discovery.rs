//! Discovery: finds the nodes of a log in the directory after a crash.
//!
//! The second pass of a replay. A crash of the process leaves the effects of the first records; a
//! crash of the machine leaves the effects of any records, within the order that the file system
//! keeps. So each node is searched for in all places where the log had it.

use std::collections::{BTreeMap, HashMap, HashSet};

use apus_fs_core::wire::{Errno, Ino, Name, NodeKind};

use super::files::Files;
use super::identity::{Identity, Status};
use super::journeys::Journeys;
use super::listing;
use super::table::{ORPHANS, Place, REPLAY, Table, is_public};

/// Contents of the directory. The table has the nodes of the log in the places where they were
/// found.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    /// Final places of the log's nodes.
    pub(crate) goal: HashMap<Ino, Vec<Place>>,
    /// Files that an interrupted batch or replay created, parents before their children.
    pub(crate) garbage: Vec<Ino>,
    /// Places where the log had nodes, and which another file has now.
    pub(crate) foreign: HashMap<Place, Identity>,
    by_directory: HashMap<Ino, BTreeMap<Name, Vec<Ino>>>,
    identities: HashMap<Identity, Ino>,
    /// Directories that are reached when this one is found.
    waiting: HashMap<Ino, Vec<Ino>>,
    queue: Vec<Ino>,
}

impl Discovery {
    /// Seeks all nodes of a log.
    pub(crate) fn run(
        files: &mut Files,
        table: &mut Table,
        journeys: &mut Journeys,
    ) -> Result<Self, Errno> {
        let mut this = Self { by_directory: journeys.by_directory(), ..Self::default() };
        this.detach(table, journeys);
        for directory in [REPLAY, ORPHANS] {
            this.seek_by_number(files, table, journeys, directory)?;
        }
        for (ino, node) in &journeys.nodes {
            if let Some(identity) = node.identity {
                this.identities.insert(identity, *ino);
            }
        }
        for directory in this.by_directory.keys().copied().collect::<Vec<_>>() {
            this.enqueue(table, directory);
        }
        while let Some(directory) = this.queue.pop() {
            this.seek_in(files, table, journeys, directory);
        }
        Ok(this)
    }

    /// Takes the nodes of the log out of the table's names, and puts those into the table that are
    /// to be removed.
    fn detach(&mut self, table: &mut Table, journeys: &Journeys) {
        for (ino, node) in &journeys.nodes {
            match table.node(*ino) {
                Some(known) => {
                    let places = known.places.clone();
                    for place in &places {
                        table.remove_place(place);
                    }
                    self.goal.insert(*ino, places);
                }
                None => table.insert(*ino, node.kind, None),
            }
        }
        // Afterwards, because an inode number can have been used by several of them, one after the
        // other.
        for (ino, node) in &journeys.nodes {
            if let Some(identity) = node.identity.filter(|is| table.identified(*is).is_none()) {
                table.identify(*ino, identity);
            }
        }
    }

    /// Seeks nodes in a directory where their numbers are their names.
    fn seek_by_number(
        &mut self,
        files: &mut Files,
        table: &mut Table,
        journeys: &mut Journeys,
        directory: Ino,
    ) -> Result<(), Errno> {
        let file = files.directory(table, directory)?;
        let names = listing::names(&file)?;
        let there: HashSet<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let known = table.names(directory).map(|(name, ino)| (name.clone(), ino));
        let gone = known.filter(|(name, _)| !there.contains(name.as_bytes()));
        // Dropped just before the crash.
        for (name, ino) in gone.collect::<Vec<_>>() {
            table.remove_place(&(directory, name));
            if table.node(ino).is_some_and(|node| node.places.is_empty()) {
                table.remove(ino);
            }
        }
        for name in names {
            let Ok(name) = Name::new(name) else { continue };
            let number = str::from_utf8(name.as_bytes()).ok().and_then(|text| text.parse().ok());
            let status = files.status_at(&file, &name)?;
            let place = (directory, name);
            let ino = number.map(Ino).filter(|ino| is_public(*ino));
            match ino.and_then(|ino| Some((ino, journeys.nodes.get_mut(&ino)?))) {
                // An interrupted replay may have created the node a second time.
                Some((ino, node))
                    if node.identity == Some(status.identity)
                        || (node.created.is_some() && node.kind == status.attributes.kind) =>
                {
                    node.identity = Some(status.identity);
                    table.identify(ino, status.identity);
                    table.add_place(ino, &place);
                }
                _ if table.at(directory, &place.1).is_some() => {}
                _ => {
                    self.foreign.insert(place, status.identity);
                }
            }
        }
        Ok(())
    }

    /// Puts a directory into the queue if it can be reached already; else it waits for the one on
    /// its way that was not found.
    fn enqueue(&mut self, table: &Table, directory: Ino) {
        let mut at = directory;
        for _ in 0..4096 {
            if at == Ino::ROOT || !is_public(at) {
                self.queue.push(directory);
                return;
            }
            match table.node(at).and_then(|node| node.places.first()) {
                Some(place) => at = place.0,
                None => break,
            }
        }
        self.waiting.entry(at).or_default().push(directory);
    }

    fn seek_in(&mut self, files: &mut Files, table: &mut Table, journeys: &Journeys, parent: Ino) {
        // Those were read as a whole.
        if parent == ORPHANS || parent == REPLAY {
            return;
        }
        let Some(names) = self.by_directory.get(&parent).cloned() else { return };
        let Ok(directory) = files.directory(table, parent) else { return };
        for (name, nodes) in names {
            match files.status_at(&directory, &name) {
                Ok(status) => {
                    self.meet(table, journeys, &(parent, name), &nodes, &status);
                }
                Err(Errno::NOENT) => {}
                // Another file system, or an error: it stays.
                Err(_) => continue,
            }
        }
    }

    /// Identifies the file at a place where the log had `nodes`.
    fn meet(
        &mut self,
        table: &mut Table,
        journeys: &Journeys,
        place: &Place,
        nodes: &[Ino],
        status: &Status,
    ) {
        let (identity, kind) = (status.identity, status.attributes.kind);
        if let Some(ino) = self.identities.get(&identity).copied() {
            table.add_place(ino, place);
            if kind == NodeKind::Directory {
                for waiting in self.waiting.remove(&ino).unwrap_or_default() {
                    self.enqueue(table, waiting);
                }
            }
            return;
        }
        let may_be = |ino: &Ino| {
            let node = journeys.nodes.get(ino);
            node.is_some_and(|node| {
                node.created.is_some() && node.identity.is_none() && node.kind == kind
            })
        };
        let candidates: Vec<Ino> = nodes.iter().copied().filter(may_be).collect();
        if candidates.is_empty() || table.identified(identity).is_some() {
            self.foreign.insert(place.clone(), identity);
            return;
        }
        let ino = table.number(identity);
        table.insert(ino, kind, Some(identity));
        table.add_place(ino, place);
        self.garbage.push(ino);
        if kind == NodeKind::Directory {
            // Nodes that existed before may have been moved into it.
            let mut names: BTreeMap<Name, Vec<Ino>> = BTreeMap::new();
            for candidate in candidates {
                for (name, nodes) in self.by_directory.get(&candidate).into_iter().flatten() {
                    names.entry(name.clone()).or_default().extend(nodes);
                }
            }
            self.by_directory.insert(ino, names);
            self.enqueue(table, ino);
        }
    }
}
