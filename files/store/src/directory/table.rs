//! The table of nodes: their numbers, and the names each was seen under.
//!
//! # Invariants
//!
//! - **TABLE-1** A name in a directory belongs to one node at most, and `places` of that node has
//!   it.
//! - **TABLE-2** A directory has one place at most.
//! - **TABLE-3** An identity belongs to one node at most.

use std::collections::{BTreeMap, HashMap};

use apus_fs_core::wire::{Ino, Name, NodeKind};

use super::identity::{Identity, is_found};

/// The directory of nodes without a name. A node's name in it is its number.
pub(crate) const ORPHANS: Ino = Ino(2);
/// The directory where a replay keeps nodes while it moves them.
pub(crate) const REPLAY: Ino = Ino(3);
/// The directory for files that a replay found in the way, and that are not its own.
pub(crate) const LOST: Ino = Ino(4);
/// The first number that a client may give to a node.
pub(crate) const FIRST_CREATED: u64 = 1 << 20;

/// A directory and a name in it.
pub(crate) type Place = (Ino, Name);

/// Returns whether a client may name this node.
pub(crate) const fn is_public(ino: Ino) -> bool {
    ino.0 == Ino::ROOT.0 || ino.0 >= FIRST_CREATED
}

/// Returns the name of a node in the directories of this store's own.
pub(crate) fn number_name(ino: Ino) -> Name {
    Name::new(ino.0.to_string()).expect("digits are a name")
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Kind of the node.
    pub(crate) kind: NodeKind,
    /// Its backing file, unless that was not created yet.
    pub(crate) identity: Option<Identity>,
    /// Places where it was seen; a name in [`ORPHANS`] if it has lost its last name.
    pub(crate) places: Vec<Place>,
    /// The last version issued.
    pub(crate) shown: u64,
}

/// All known nodes.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    nodes: HashMap<Ino, Node>,
    names: HashMap<Ino, BTreeMap<Name, Ino>>,
    identities: HashMap<Identity, Ino>,
    secret: [u8; 16],
}

impl Table {
    /// Returns a table that contains only the root.
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let mut table = Self {
            nodes: HashMap::new(),
            names: HashMap::new(),
            identities: HashMap::new(),
            secret,
        };
        table.insert(Ino::ROOT, NodeKind::Directory, None);
        table
    }

    pub(crate) fn node(&self, ino: Ino) -> Option<&Node> {
        self.nodes.get(&ino)
    }

    pub(crate) fn node_mut(&mut self, ino: Ino) -> Option<&mut Node> {
        self.nodes.get_mut(&ino)
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Ino, &Node)> {
        self.nodes.iter().map(|(ino, node)| (*ino, node))
    }

    /// Returns the node that has a name.
    pub(crate) fn at(&self, parent: Ino, name: &Name) -> Option<Ino> {
        self.names.get(&parent)?.get(name).copied()
    }

    /// Returns the known names in a directory.
    pub(crate) fn names(&self, parent: Ino) -> impl Iterator<Item = (&Name, Ino)> {
        self.names.get(&parent).into_iter().flatten().map(|(name, ino)| (name, *ino))
    }

    pub(crate) fn is_empty(&self, directory: Ino) -> bool {
        self.names.get(&directory).is_none_or(BTreeMap::is_empty)
    }

    pub(crate) fn is_orphan(&self, ino: Ino) -> bool {
        self.node(ino).is_some_and(|node| node.places.iter().any(|place| place.0 == ORPHANS))
    }

    /// Returns the node of a backing file, if known.
    pub(crate) fn identified(&self, identity: Identity) -> Option<Ino> {
        self.identities.get(&identity).copied()
    }

    /// Returns the number of a backing file's node; a new one, if the file is not known.
    pub(crate) fn number(&self, identity: Identity) -> Ino {
        self.identified(identity).unwrap_or_else(|| {
            let numbers = (0..).map(|attempt| identity.number(&self.secret, attempt));
            let mut free = numbers.filter(|ino| !self.nodes.contains_key(ino));
            free.next().expect("there are more numbers than nodes")
        })
    }

    /// Adds a node without a name, unless it exists.
    pub(crate) fn insert(&mut self, ino: Ino, kind: NodeKind, identity: Option<Identity>) {
        let node = Node { kind, identity: None, places: Vec::new(), shown: 0 };
        self.nodes.entry(ino).or_insert(node).kind = kind;
        if let Some(identity) = identity {
            self.identify(ino, identity);
        }
    }

    /// Notes the backing file of a node. A node that had it before was removed: its inode number
    /// was used again.
    pub(crate) fn identify(&mut self, ino: Ino, identity: Identity) {
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        let before = node.identity.replace(identity);
        if let Some(before) = before.filter(|before| *before != identity) {
            self.identities.remove(&before);
        }
        if let Some(other) = self.identities.insert(identity, ino).filter(|other| *other != ino)
            && let Some(other) = self.nodes.get_mut(&other)
        {
            other.identity = None;
        }
    }

    /// Gives a node a name; another node that had it loses it.
    pub(crate) fn add_place(&mut self, ino: Ino, place: &Place) {
        if self.at(place.0, &place.1) == Some(ino) {
            return;
        }
        self.remove_place(place);
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        let before = match node.kind {
            NodeKind::Directory => std::mem::take(&mut node.places),
            _ => Vec::new(),
        };
        node.places.push(place.clone());
        for (parent, name) in before {
            if let Some(names) = self.names.get_mut(&parent) {
                names.remove(&name);
            }
        }
        self.names.entry(place.0).or_default().insert(place.1.clone(), ino);
    }

    /// Removes a name, and returns the node that had it.
    pub(crate) fn remove_place(&mut self, place: &Place) -> Option<Ino> {
        let names = self.names.get_mut(&place.0)?;
        let ino = names.remove(&place.1)?;
        if names.is_empty() {
            self.names.remove(&place.0);
        }
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.places.retain(|other| other != place);
        }
        Some(ino)
    }

    /// Removes a node with its names, and the names that were seen in it.
    pub(crate) fn remove(&mut self, ino: Ino) {
        let Some(node) = self.nodes.get(&ino) else { return };
        for place in node.places.clone() {
            self.remove_place(&place);
        }
        for name in self.names.remove(&ino).unwrap_or_default() {
            if let Some(child) = self.nodes.get_mut(&name.1) {
                child.places.retain(|place| place.0 != ino);
            }
        }
        let node = self.nodes.remove(&ino).expect("it was there");
        if let Some(identity) = node.identity
            && self.identities.get(&identity) == Some(&ino)
        {
            self.identities.remove(&identity);
        }
    }

    /// Notes that a name is not there any more. A node that was found and has no other name is
    /// forgotten: it would get the same number when it is found again.
    pub(crate) fn forget_place(&mut self, place: &Place) {
        let Some(ino) = self.remove_place(place) else { return };
        let nameless = self.node(ino).is_some_and(|node| node.places.is_empty());
        if nameless && is_found(ino) && self.is_empty(ino) {
            self.remove(ino);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text.to_owned()).unwrap()
    }

    /// TABLE-1 to TABLE-3.
    #[test]
    fn names_and_identities_belong_to_one_node() {
        let mut table = Table::new([7; 16]);
        let identity = Identity { inode: 5, born: (1, 2) };
        let (a, b) = (Ino(1 << 20), Ino((1 << 20) + 1));
        table.insert(a, NodeKind::Directory, Some(identity));
        table.add_place(a, &(Ino::ROOT, name("a")));
        table.add_place(a, &(Ino::ROOT, name("b")));
        assert_eq!(table.node(a).unwrap().places.len(), 1);
        assert_eq!(table.at(Ino::ROOT, &name("a")), None);

        table.insert(b, NodeKind::File, Some(identity));
        table.add_place(b, &(Ino::ROOT, name("b")));
        assert_eq!(table.at(Ino::ROOT, &name("b")), Some(b));
        assert_eq!(table.node(a).unwrap().places, []);
        assert_eq!(table.node(a).unwrap().identity, None);
        assert_eq!(table.number(identity), b);
        table.remove(b);
        assert!(is_found(table.number(identity)));
        assert!(table.is_empty(Ino::ROOT));
    }
}
