//! What was recorded of packets or frames, read once and shared by all that play it.

use serde::Deserialize;
use std::{ops::Deref, sync::Arc};
use tcps_core::time::Time;

/// Packets or frames as (moment in ns, bytes), moments from 0, in order. A copy is another handle to the same list.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Vec<(Time, u32)>")]
pub struct Recording(Arc<[(Time, u32)]>);

impl From<Vec<(Time, u32)>> for Recording {
    fn from(list: Vec<(Time, u32)>) -> Self {
        Self(list.into())
    }
}

impl Deref for Recording {
    type Target = [(Time, u32)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_same_list() {
        let one = Recording::from(vec![(0, 100), (5, 200)]);
        assert_eq!(one[..], [(0, 100), (5, 200)]);
        assert!(std::ptr::eq(&one[..], &one.clone()[..]));
    }
}
