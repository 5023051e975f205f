//! Numbers of things in a plan, a type for each sort: where two sorts stand side by side they cannot be mixed up. A list is
//! indexed by the number of its things.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    ops::{Index, IndexMut},
};

/// No flow, point or node applies.
pub const NONE: u16 = u16::MAX;

macro_rules! ids {
    ($($(#[doc = $doc:literal])* $id:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $id(pub u16);

        impl $id {
            /// None.
            pub const NONE: Self = Self(NONE);

            /// Its place in a list.
            #[inline]
            pub fn index(self) -> usize {
                self.0.into()
            }

            /// The things of a list with their numbers.
            pub fn each<T>(list: &[T]) -> impl Iterator<Item = (Self, &T)> {
                (0..).map(Self).zip(list)
            }
        }

        impl From<$id> for usize {
            #[inline]
            fn from(id: $id) -> Self {
                id.index()
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        ids!(index $id [T]);
        ids!(index $id Vec<T>);
    )*};
    (index $id:ident $list:ty) => {
        impl<T> Index<$id> for $list {
            type Output = T;

            #[inline]
            fn index(&self, id: $id) -> &T {
                &self[id.index()]
            }
        }

        impl<T> IndexMut<$id> for $list {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.index()]
            }
        }
    };
}

ids! {
    /// Number of a channel.
    ChannelId;
    /// Number of a component.
    ComponentId;
    /// Number of a flow.
    FlowId;
    /// Number of a link.
    LinkId;
    /// Number of a node.
    NodeId;
    /// Number of a session.
    SessionId;
    /// Number of a background traffic entry.
    TrafficId;
    /// Number of a vertex of the network.
    VertexId;
}

/// Nodes are the first vertices of the network.
impl From<NodeId> for VertexId {
    #[inline]
    fn from(node: NodeId) -> Self {
        Self(node.0)
    }
}
