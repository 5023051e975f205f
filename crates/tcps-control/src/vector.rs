//! Vectors of three and unit quaternions (w, x, y, z).

/// A vector.
pub(crate) type V3 = [f64; 3];

pub(crate) fn add(a: V3, b: V3) -> V3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

pub(crate) fn sub(a: V3, b: V3) -> V3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

pub(crate) fn scale(a: V3, k: f64) -> V3 {
    [a[0] * k, a[1] * k, a[2] * k]
}

pub(crate) fn dot(a: V3, b: V3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn norm(a: V3) -> f64 {
    dot(a, a).sqrt()
}

/// The vector shortened to length `most`, if it is longer.
pub(crate) fn shorten(a: V3, most: f64) -> V3 {
    let length = norm(a);
    if length > most {
        scale(a, most / length)
    } else {
        a
    }
}

/// The first three values, if there are three and all are finite.
pub(crate) fn three(values: &[f64]) -> Option<V3> {
    let v = [*values.first()?, *values.get(1)?, *values.get(2)?];
    v.iter().all(|x| x.is_finite()).then_some(v)
}

/// A rotation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quaternion {
    w: f64,
    v: V3,
}

impl Quaternion {
    /// The shortest rotation from direction `a` to direction `b`.
    pub(crate) fn between(a: V3, b: V3) -> Self {
        let (a, b) = (scale(a, 1.0 / norm(a)), scale(b, 1.0 / norm(b)));
        let w = 1.0 + dot(a, b);
        if w > 1e-9 {
            return Self { w, v: cross(a, b) }.unit();
        }
        // Opposite directions: half a turn about any axis across.
        let across = if a[0].abs() < 0.9 { cross(a, [1.0, 0.0, 0.0]) } else { cross(a, [0.0, 1.0, 0.0]) };
        Self { w: 0.0, v: across }.unit()
    }

    /// The rotation by the vector `angle` (direction: axis, length: rad).
    pub(crate) fn turn(angle: V3) -> Self {
        let a = norm(angle);
        // Below this sin(a/2)/a is 1/2 to the last bit.
        let k = if a > 1e-8 { libm::sin(a / 2.0) / a } else { 0.5 };
        Self { w: libm::cos(a / 2.0), v: scale(angle, k) }
    }

    /// First `other`, then `self`.
    pub(crate) fn after(self, other: Self) -> Self {
        Self {
            w: self.w * other.w - dot(self.v, other.v),
            v: add(add(scale(other.v, self.w), scale(self.v, other.w)), cross(self.v, other.v)),
        }
    }

    /// The same rotation at length 1.
    pub(crate) fn unit(self) -> Self {
        let n = (self.w * self.w + dot(self.v, self.v)).sqrt();
        Self { w: self.w / n, v: scale(self.v, 1.0 / n) }
    }

    /// The rotated vector.
    pub(crate) fn rotate(self, x: V3) -> V3 {
        let t = scale(cross(self.v, x), 2.0);
        add(add(x, scale(t, self.w)), cross(self.v, t))
    }

    /// The rotation back.
    pub(crate) fn inverse(self) -> Self {
        Self { w: self.w, v: scale(self.v, -1.0) }
    }
}
