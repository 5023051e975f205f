"""The browser console: pictures and force to the operator, hand and gamepad back (docs/console.md)."""
