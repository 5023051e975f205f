"""A table for analysis in Python: numeric columns, with their units, for Arrow, pandas and polars."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tcpsbed.errors import DataError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa


class Frame(ABC):
    """Something that is a table."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """An Arrow table; the metadata of a column's field has its unit (`unit`), as does the end of its name."""

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas.

        Raises
        ------
        DataError
            If pandas is not installed.
        """
        need("pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars.

        Raises
        ------
        DataError
            If polars is not installed.
        """
        frame: polars.DataFrame = need("polars").from_arrow(self.to_arrow())
        return frame


def need(package: str) -> Any:
    """A package for tables.

    Raises
    ------
    DataError
        If it is not installed.
    """
    try:
        return import_module(package)
    except ImportError:
        raise DataError(
            f"found no package {package}, which this table needs", allowed=f"pip install 'tcpsbed[{package}]'"
        ) from None


def field(name: str, kind: pa.DataType, unit: str = "") -> pa.Field:
    """A column with its unit."""
    import pyarrow

    return pyarrow.field(name, kind, metadata={"unit": unit} if unit else None)
