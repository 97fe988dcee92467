//! Published figures: tables of figures that others measured, read from CSV.
//!
//! The tables are files beside the experiments that show them. Lines that begin with `#` name the source.

use serde::de::DeserializeOwned;

/// Returns the records of a table, whose header names the fields of `R`.
///
/// # Panics
///
/// If the table is malformed; tables are part of the program.
#[must_use]
pub fn records<R: DeserializeOwned>(table: &str) -> Vec<R> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(table.as_bytes());
    let records = reader.deserialize().collect::<Result<_, _>>();
    records.unwrap_or_else(|error| panic!("a table of published figures: {error}"))
}

/// Returns records in groups of equal keys, in the order of their first records.
pub fn grouped<R, K: PartialEq>(records: Vec<R>, key: impl Fn(&R) -> K) -> Vec<(K, Vec<R>)> {
    let mut groups: Vec<(K, Vec<R>)> = Vec::new();
    for record in records {
        let key = key(&record);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(record),
            None => groups.push((key, vec![record])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Point {
        name: String,
        x: f64,
        y: Option<u64>,
    }

    #[test]
    fn a_record_has_the_fields_of_the_header() {
        let table = "# Source: a paper\nname,x,y\n\"one, two\",1.5,2\nthree,4,\n";
        let found: Vec<Point> = records(table);
        let point = |name: &str, x, y| Point { name: name.to_owned(), x, y };
        assert_eq!(found, [point("one, two", 1.5, Some(2)), point("three", 4.0, None)]);
    }

    #[test]
    fn records_of_one_key_form_a_group() {
        let groups = grouped(vec![(1, 'a'), (2, 'b'), (1, 'c')], |record| record.0);
        assert_eq!(groups, [(1, vec![(1, 'a'), (1, 'c')]), (2, vec![(2, 'b')])]);
    }
}
