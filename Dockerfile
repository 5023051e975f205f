# tcpsbed in a container (untested): make wheel && docker build --tag tcpsbed . && docker run --rm --volume "$PWD:/work" tcpsbed run my.toml
# What is on the machine's clock wants more memory to share than a container has by itself: --shm-size=256m.
# The world `containers` has images of its own: tcpsbed image.
FROM python:3.13-slim
COPY dist/tcpsbed-*.whl /wheel/
RUN pip install --no-cache-dir /wheel/tcpsbed-*.whl && rm -r /wheel
WORKDIR /work
ENTRYPOINT ["tcpsbed"]
CMD ["--help"]
