//! Renames.

use crate::client::interface::operation::{Place, Reply};
use crate::client::nodes::node::Node;
use crate::client::nodes::renames::Rename;
use crate::wire::{Errno, Ino, LeaseKind, Record};

use super::lease::lease;
use super::places::{change_directory, drop_link, gain_directory, lose_directory, require_empty};
use super::resolve::resolve;
use super::turn::{Attempt, Turn};

/// A rename whose nodes are resolved and leased.
struct Plan<'a> {
    from: &'a Place,
    to: &'a Place,
    moved: Ino,
    replaced: Option<Ino>,
    exchange: bool,
    moves_directory: bool,
    /// Whether `replaced` is a directory.
    replaces_directory: bool,
}

pub(super) fn rename(
    turn: &mut Turn<'_>,
    from: &Place,
    to: &Place,
    exchange: bool,
    no_replace: bool,
) -> Attempt<Reply> {
    if turn.was_applied_alone()? {
        return Ok(Reply::Done);
    }
    turn.require_room(0)?;
    let Some(moved) = resolve(turn, from.directory, &from.name)? else {
        return Err(Errno::NOENT.into());
    };
    let replaced = resolve(turn, to.directory, &to.name)?;
    match replaced {
        Some(_) if no_replace => return Err(Errno::EXIST.into()),
        None if exchange => return Err(Errno::NOENT.into()),
        Some(same) if same == moved => return Ok(Reply::Done),
        _ => {}
    }
    let nodes = [Some(from.directory), Some(to.directory), Some(moved), replaced];
    let nodes: Vec<Ino> = nodes.into_iter().flatten().collect();
    let leases: Vec<_> = nodes.iter().map(|ino| (*ino, LeaseKind::Exclusive)).collect();
    lease(turn, &leases)?;
    let unchanged = resolve(turn, from.directory, &from.name)? == Some(moved)
        && resolve(turn, to.directory, &to.name)? == replaced;
    if !unchanged {
        return rename(turn, from, to, exchange, no_replace);
    }
    let plan = plan(turn, (from, moved), (to, replaced), exchange)?;
    let record = plan.record(turn)?;
    let moves_any = plan.moves_directory || plan.replaces_directory;
    if moves_any && from.directory != to.directory {
        // Only the server can decide whether a directory would become its own descendant.
        let stop = turn.apply_alone(&nodes, record);
        let is_removed = !exchange && plan.replaces_directory;
        turn.cache.renames.add(Rename {
            number: turn.waiting.own_batch(turn.token).unwrap_or_default(),
            nodes,
            directories: [from.directory, to.directory],
            removed: replaced.filter(|_| is_removed),
        });
        return Err(stop);
    }
    turn.record(&nodes, record);
    apply(turn, &plan)?;
    Ok(Reply::Done)
}

/// Checks the kinds of the nodes.
fn plan<'a>(
    turn: &mut Turn<'_>,
    (from, moved): (&'a Place, Ino),
    (to, replaced): (&'a Place, Option<Ino>),
    exchange: bool,
) -> Attempt<Plan<'a>> {
    let moves_directory = turn.cache.node(moved)?.is_directory();
    let replaces_directory = replaced.map(|ino| turn.cache.node(ino).map(Node::is_directory));
    let replaces_directory = replaces_directory.transpose()?;
    if !exchange {
        match (moves_directory, replaces_directory) {
            (true, Some(false)) => return Err(Errno::NOTDIR.into()),
            (false, Some(true)) => return Err(Errno::ISDIR.into()),
            (true, Some(true)) => require_empty(turn, replaced.unwrap_or(moved))?,
            _ => {}
        }
    }
    if turn.cache.node(to.directory)?.attributes.links == 0 {
        return Err(Errno::NOENT.into());
    }
    let replaces_directory = replaces_directory.unwrap_or(false);
    Ok(Plan { from, to, moved, replaced, exchange, moves_directory, replaces_directory })
}

impl Plan<'_> {
    fn record(&self, turn: &Turn<'_>) -> Result<Record, Errno> {
        let Self { from, to, moved, replaced, exchange, .. } = self;
        Ok(Record::Rename {
            from: (turn.cache.handle(from.directory)?, from.name.clone()),
            to: (turn.cache.handle(to.directory)?, to.name.clone()),
            node: turn.cache.handle(*moved)?,
            replaced: replaced.map(|ino| turn.cache.handle(ino)).transpose()?,
            exchange: *exchange,
        })
    }
}

/// Renames in the cache.
fn apply(turn: &mut Turn<'_>, plan: &Plan<'_>) -> Result<(), Errno> {
    let Plan { from, to, moved, replaced, exchange, moves_directory, replaces_directory } = *plan;
    change_directory(turn, from.directory, |names| match replaced {
        Some(ino) if exchange => names.put(from.name.clone(), ino),
        _ => names.remove(&from.name),
    });
    change_directory(turn, to.directory, |names| names.put(to.name.clone(), moved));
    turn.cache.node_mut(moved)?.parent = Some(to.directory);
    if exchange {
        if let Some(node) = replaced.and_then(|ino| turn.cache.get_mut(ino)) {
            node.parent = Some(from.directory);
        }
        if moves_directory != replaces_directory {
            let (loses, gains) = if moves_directory { (from, to) } else { (to, from) };
            lose_directory(turn.cache, loses.directory)?;
            gain_directory(turn.cache, gains.directory)?;
        }
        return Ok(());
    }
    if moves_directory {
        lose_directory(turn.cache, from.directory)?;
        gain_directory(turn.cache, to.directory)?;
    }
    if let Some(ino) = replaced {
        if replaces_directory {
            lose_directory(turn.cache, to.directory)?;
            turn.cache.node_mut(ino)?.become_removed();
        } else {
            drop_link(turn, ino);
        }
    }
    Ok(())
}
